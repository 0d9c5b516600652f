// The map of an index: the one that is there, and the work that makes one.
import { get, path, post, useData } from '../../api.js';
import { useCallback, useEffect, useRef, useState } from '../../ui.js';
import { followTask } from '../tasks/follow.js';

const POLL_MS = 700;

// {map, failure, loading, task, start(wishes), reload, startFailure, taskFailure}. `map` is null where
// none was made, and taskFailure says that the server does not answer how far the work is.
export function useMap(keyspace, index) {
  const base = path('/api/v1/indexes', keyspace, index, 'map');
  const [task, setTask] = useState(null);
  const [startFailure, setStartFailure] = useState(null);
  const [taskFailure, setTaskFailure] = useState(null);
  const alive = useRef(true);
  useEffect(() => () => (alive.current = false), []);

  const data = useData(async (signal) => {
    const last = await lastTask(keyspace, index, signal);
    if (last?.state === 'running') setTask(last);
    return { map: last ? await mapOf(base, signal) : null };
  }, [base]);

  // Follows the task until it has ended. It may go on after this page is left.
  const isRunning = task?.state === 'running';
  useEffect(() => {
    if (!isRunning) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    const onLook = (now, failure) => {
      setTask(now);
      setTaskFailure(failure);
    };
    const follow = async () => {
      try {
        const ended = await followTask(task, { every: POLL_MS, signal, onLook });
        if (ended.state === 'done' && alive.current) data.reload();
      } catch (failure) {
        if (!signal.aborted) setTask({ ...task, state: 'failed', error: failure.message });
      }
    };
    follow();
    return () => controller.abort();
  }, [task?.id, isRunning]);

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
  return { ...data, map: data.data?.map, task, start, startFailure, taskFailure };
}

// The last work on a map of an index that has not failed. Maps and tasks are both in the server's memory: without such a task
// there is no map to request.
async function lastTask(keyspace, index, signal) {
  const tasks = await get('/api/v1/tasks', { signal });
  const mine = tasks.filter((task) => task.kind === 'map' && task.keyspace === keyspace && task.index === index);
  const good = mine.filter(({ state }) => state === 'running' || state === 'done');
  return good.sort((one, other) => other.sequence_number - one.sequence_number)[0] ?? null;
}

// The map that is there; null if there is none yet, or it had to make room.
async function mapOf(base, signal) {
  try {
    const answer = await get(base, { signal });
    return answer.x ? prepared(answer) : null;
  } catch (failure) {
    if (failure.kind === 'missing' && !/missing index/.test(failure.message)) return null;
    throw failure;
  }
}

// Coordinates as plain arrays of numbers are slow to draw.
function prepared(answer) {
  return { ...answer, x: Float32Array.from(answer.x), y: Float32Array.from(answer.y) };
}
