package suite;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.data.CqlVector;
import java.util.Map;
import java.util.UUID;
import suite.mapped.Place;
import suite.mapped.Shop;
import suite.mapped.ShopDao;
import suite.mapped.ShopMapperBuilder;

/** The object mapper. */
final class Mapped {
    private Mapped() {}

    static void run(CqlSession session) throws Exception {
        session.execute("CREATE TYPE place (city text, number int)");
        session.execute("CREATE TABLE shops (id uuid, year int, name text, place frozen<place>, branches map<text, frozen<place>>,"
                + " taste vector<float, 2>, PRIMARY KEY (id, year))");
        session.execute("CREATE CUSTOM INDEX shops_taste ON shops (taste) USING 'sai'");
        session.execute("CREATE TABLE shop_visits (id uuid PRIMARY KEY, count counter)");
        ShopDao dao = new ShopMapperBuilder(session).build().dao(session.getKeyspace().orElseThrow());
        UUID id = UUID.randomUUID();
        Place place = new Place("Oslo", 7);
        Shop shop = new Shop(id, 2020, "Corner", place, Map.of("a", place), CqlVector.newInstance(1f, 0f));
        dao.save(shop);
        Check.equal(shop, dao.find(id, 2020), "a row");
        Check.equal(shop, dao.saveFirst(new Shop(id, 2020, "Other", place, Map.of(), CqlVector.newInstance(0f, 1f))), "the row that is there");
        Shop next = new Shop(id, 2021, "Next", place, Map.of(), CqlVector.newInstance(0f, 1f));
        Check.isTrue(!dao.update(next), "nothing to update");
        Check.isTrue(dao.saveFirst(next) == null, "the first of its key");
        Check.isTrue(dao.update(new Shop(id, 2021, "Renamed", place, Map.of(), CqlVector.newInstance(0f, 1f))), "an update");
        Check.isTrue(!dao.rename(next, "Next").wasApplied(), "a condition");
        Check.isTrue(dao.rename(next, "Renamed").wasApplied(), "a condition");
        Check.equal(2, dao.since(id, 2020, 10).all().size(), "rows by a clause");
        Check.equal(1, dao.since(id, 2000, 1).all().size(), "rows up to a limit");
        dao.saveFor(new Shop(UUID.randomUUID(), 1, "Brief", null, null, null), 1000);
        Check.equal(3, (int) dao.all().toCompletableFuture().get().remaining(), "all rows");
        Check.equal(2L, dao.count(id), "a count");
        Check.eventually(() -> dao.near(CqlVector.newInstance(1f, 0.1f)).all().size() == 2, "the index serves");
        Check.equal(2020, dao.near(CqlVector.newInstance(1f, 0.1f)).one().year(), "the nearest");
        Check.isTrue(dao.delete(next) && !dao.delete(next), "a delete");
        dao.deleteAll(id);
        Check.equal(0L, dao.count(id), "none is left");
        dao.visit(id, 2);
        dao.visit(id, 3);
        Check.equal(5L, dao.visits(id).count(), "a counter");
    }
}
