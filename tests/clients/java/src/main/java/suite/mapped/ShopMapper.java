package suite.mapped;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.mapper.annotations.DaoFactory;
import com.datastax.oss.driver.api.mapper.annotations.DaoKeyspace;
import com.datastax.oss.driver.api.mapper.annotations.Mapper;

/** Makes the DAO. */
@Mapper
public interface ShopMapper {
    @DaoFactory
    ShopDao dao(@DaoKeyspace CqlIdentifier keyspace);
}
