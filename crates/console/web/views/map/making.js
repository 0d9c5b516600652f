// The map of an index: the one that is there, and the work that makes one.
import { get, path, post, useData } from '../../api.js';
import { useCallback, useEffect, useRef, useState } from '../../ui.js';

const POLL_MS = 700;

// {map, failure, loading, task, start(wishes), reload, startFailure}. `map` is null where none was made.
export function useMap(keyspace, index) {
  const base = path('/api/v1/indexes', keyspace, index, 'map');
  const [task, setTask] = useState(null);
  const [startFailure, setStartFailure] = useState(null);
  const alive = useRef(true);
  useEffect(() => () => (alive.current = false), []);

  const data = useData(async (signal) => {
    try {
      const answer = await get(base, { signal });
      if (answer.x) return { map: prepared(answer) };
      setTask(answer.task);
    } catch (failure) {
      if (failure.kind !== 'missing' || /missing index/.test(failure.message)) throw failure;
    }
    return { map: null };
  }, [base]);

  // Follows the task until it has ended. It may go on after this page is left.
  useEffect(() => {
    if (task?.state !== 'running') return undefined;
    const timer = setTimeout(async () => {
      let next = null;
      try {
        next = await get(path('/api/v1/tasks', task.id));
      } catch (failure) {
        next = { ...task, state: 'failed', error: failure.message };
      }
      if (!alive.current) return;
      setTask(next);
      if (next.state === 'done') data.reload();
    }, POLL_MS);
    return () => clearTimeout(timer);
  }, [task]);

  const start = useCallback(
    async (wishes) => {
      setStartFailure(null);
      try {
        const { task: begun, ready } = await post(base, wishes);
        if (!alive.current) return;
        setTask(begun);
        if (ready || begun?.state === 'done' || !begun) data.reload();
      } catch (failure) {
        if (alive.current) setStartFailure(failure);
      }
    },
    [base],
  );
  return { ...data, map: data.data?.map, task, start, startFailure };
}

// Coordinates as plain arrays of numbers are slow to draw.
function prepared(answer) {
  return { ...answer, x: Float32Array.from(answer.x), y: Float32Array.from(answer.y) };
}
