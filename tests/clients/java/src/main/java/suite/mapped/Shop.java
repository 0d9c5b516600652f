package suite.mapped;

import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.mapper.annotations.ClusteringColumn;
import com.datastax.oss.driver.api.mapper.annotations.CqlName;
import com.datastax.oss.driver.api.mapper.annotations.Entity;
import com.datastax.oss.driver.api.mapper.annotations.PartitionKey;
import com.datastax.oss.driver.api.mapper.annotations.PropertyStrategy;
import com.datastax.oss.driver.api.mapper.entity.naming.GetterStyle;
import java.util.Map;
import java.util.UUID;

/** A row. */
@Entity
@CqlName("shops")
@PropertyStrategy(mutable = false, getterStyle = GetterStyle.FLUENT)
public record Shop(
        @PartitionKey UUID id, @ClusteringColumn int year, String name, Place place, Map<String, Place> branches, CqlVector<Float> taste) {}
