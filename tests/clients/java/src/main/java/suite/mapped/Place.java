package suite.mapped;

import com.datastax.oss.driver.api.mapper.annotations.CqlName;
import com.datastax.oss.driver.api.mapper.annotations.Entity;
import com.datastax.oss.driver.api.mapper.annotations.PropertyStrategy;
import com.datastax.oss.driver.api.mapper.entity.naming.GetterStyle;

/** A user type. */
@Entity
@CqlName("place")
@PropertyStrategy(mutable = false, getterStyle = GetterStyle.FLUENT)
public record Place(String city, int number) {}
