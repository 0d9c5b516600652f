// Preact and htm, and the hooks, from one place.
export {
  Component,
  createContext,
  h,
  html,
  render,
  useCallback,
  useContext,
  useEffect,
  useErrorBoundary,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from '../vendor/preact-htm.js';

import { useEffect, useState } from '../vendor/preact-htm.js';

let lastId = 0;

// An id for an element, the same at every redraw.
export function useUniqueId(prefix = 'id') {
  const [id] = useState(() => `${prefix}-${(lastId += 1)}`);
  return id;
}

// Whether a media query holds, now and after changes.
export function useMedia(query) {
  const [holds, setHolds] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const update = () => setHolds(media.matches);
    update();
    media.addEventListener('change', update);
    return () => media.removeEventListener('change', update);
  }, [query]);
  return holds;
}

// Goes to a view: navigate('#/tables/shop/products').
export function navigate(hash) {
  location.hash = hash;
}
