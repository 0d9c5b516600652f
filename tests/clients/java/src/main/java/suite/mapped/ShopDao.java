package suite.mapped;

import com.datastax.oss.driver.api.core.MappedAsyncPagingIterable;
import com.datastax.oss.driver.api.core.PagingIterable;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.mapper.annotations.CqlName;
import com.datastax.oss.driver.api.mapper.annotations.Dao;
import com.datastax.oss.driver.api.mapper.annotations.Delete;
import com.datastax.oss.driver.api.mapper.annotations.Increment;
import com.datastax.oss.driver.api.mapper.annotations.Insert;
import com.datastax.oss.driver.api.mapper.annotations.Query;
import com.datastax.oss.driver.api.mapper.annotations.Select;
import com.datastax.oss.driver.api.mapper.annotations.Update;
import com.datastax.oss.driver.api.mapper.entity.saving.NullSavingStrategy;
import java.util.UUID;
import java.util.concurrent.CompletionStage;

/** What is asked of the tables. */
@Dao
public interface ShopDao {
    @Insert(nullSavingStrategy = NullSavingStrategy.DO_NOT_SET)
    void save(Shop shop);

    @Insert(ifNotExists = true)
    Shop saveFirst(Shop shop);

    @Insert(ttl = ":ttl")
    void saveFor(Shop shop, int ttl);

    @Select
    Shop find(UUID id, int year);

    @Select(customWhereClause = "id = :id AND year >= :year", limit = ":l")
    PagingIterable<Shop> since(UUID id, int year, @CqlName("l") int limit);

    @Select
    CompletionStage<MappedAsyncPagingIterable<Shop>> all();

    @Update(ifExists = true)
    boolean update(Shop shop);

    @Update(customIfClause = "name = :old")
    ResultSet rename(Shop shop, String old);

    @Delete(ifExists = true)
    boolean delete(Shop shop);

    @Delete(entityClass = Shop.class)
    void deleteAll(UUID id);

    @Query("SELECT count(*) FROM ${keyspaceId}.shops WHERE id = :id")
    long count(UUID id);

    @Query("SELECT * FROM ${keyspaceId}.shops ORDER BY taste ANN OF :taste LIMIT 2")
    PagingIterable<Shop> near(CqlVector<Float> taste);

    @Increment(entityClass = Visits.class)
    void visit(UUID id, long count);

    @Select
    Visits visits(UUID id);
}
