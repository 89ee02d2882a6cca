import { stat } from 'node:fs/promises';

/** The beginning of the name of every partition of a task queue but the first, which has the name of the queue. */
const otherPartition = Buffer.from('/_sys/');
/** The tables with tasks that wait for a worker. */
const tables = ['tasks', 'tasks_v2'];

/**
 * Returns the dynamic configuration that gives each task queue one partition instead of four. Several spread the load of large
 * clusters. In one process, most tasks and polls reach different partitions, and each is then passed on by another request:
 * a quarter of the server's CPU time. Tasks that wait in other partitions since an earlier start are still given out.
 */
export async function partitionConfig(dbFile: string): Promise<readonly string[]> {
  const read = (await tasksWaitElsewhere(dbFile)) ? 4 : 1;
  return ['matching.numTaskqueueWritePartitions=1', `matching.numTaskqueueReadPartitions=${read}`];
}

/** Whether tasks wait in another partition than the first, as far as is known. The caller has claimed the database. */
async function tasksWaitElsewhere(dbFile: string): Promise<boolean> {
  const found = await stat(dbFile).catch(() => null);
  if (found === null) return false;
  const { DatabaseSync } = await import('node:sqlite');
  try {
    const sqlite = new DatabaseSync(dbFile);
    try {
      return tables.some((table) => {
        const query = `SELECT EXISTS (SELECT 1 FROM ${table} WHERE instr(task_queue_id, ?)) AS waits`;
        return sqlite.prepare(query).get(otherPartition)?.waits !== 0;
      });
    } finally {
      sqlite.close();
    }
  } catch {
    // A file that cannot be read is for the server to judge.
    return true;
  }
}
