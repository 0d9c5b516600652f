// Indexes on the sample's films that tests of the console search by.
import { serves } from './server.mjs';

const TEXT_INDEX = `CREATE CUSTOM INDEX IF NOT EXISTS movies_by_words ON samples.movies (plot, genre, release_date)
  USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'}`;
const FILMS = 10000;

// Waits until an index on the films serves all of them.
export const servesFilms = (server, index) => serves(server, 'samples', index, FILMS);

// Makes an index on the words of the plots, and waits until it has all films.
export async function fullTextIndex(server) {
  await server.cql(TEXT_INDEX);
  await servesFilms(server, 'movies_by_words');
}
