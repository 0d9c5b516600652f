import { useEffect, useState } from './html.js';

// The hash as {id, parts, query}: '#/tables/shop/products?page=2'.
function routeOf(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const parts = path
    .split('/')
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part; // A link that was cut off.
      }
    });
  return { id: parts[0] ?? 'start', parts: parts.slice(1), query: new URLSearchParams(query), hash };
}

export function useRoute() {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  useEffect(() => {
    const update = () => setRoute(routeOf(location.hash));
    window.addEventListener('hashchange', update);
    return () => window.removeEventListener('hashchange', update);
  }, []);
  return route;
}
