package suite.mapped;

import com.datastax.oss.driver.api.mapper.annotations.CqlName;
import com.datastax.oss.driver.api.mapper.annotations.Entity;
import com.datastax.oss.driver.api.mapper.annotations.PartitionKey;
import com.datastax.oss.driver.api.mapper.annotations.PropertyStrategy;
import com.datastax.oss.driver.api.mapper.entity.naming.GetterStyle;
import java.util.UUID;

/** A row of counters. */
@Entity
@CqlName("shop_visits")
@PropertyStrategy(mutable = false, getterStyle = GetterStyle.FLUENT)
public record Visits(@PartitionKey UUID id, long count) {}
