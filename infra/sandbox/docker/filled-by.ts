import type Docker from 'dockerode';
import { z } from 'zod';
import { reservedPids } from './container.ts';
import { callDaemon } from './daemon.ts';

/** The memory below which a command may not start: the runtime's own program takes some in the container first. */
const startBytes = 32 * 2 ** 20;

const statistics = z.object({
  memory_stats: z
    .object({
      usage: z.number().optional(),
      limit: z.number().optional(),
      // Files that the kernel drops when it needs the memory, in the two versions of control groups.
      stats: z.object({ inactive_file: z.number(), total_inactive_file: z.number() }).partial().optional(),
    })
    .optional(),
  pids_stats: z.object({ current: z.number(), limit: z.number() }).partial().optional(),
});

/**
 * Returns what a container has too little of to start another command, as the kernel counts it: what runs in it has used up the rest.
 * Null if it has enough, or if the daemon can't tell.
 */
export async function filledBy(container: Docker.Container): Promise<'memory' | 'processes' | null> {
  const found = statistics.safeParse(await callDaemon(() => container.stats({ stream: false, 'one-shot': true })));
  const { memory_stats: memory, pids_stats: pids } = found.data ?? {};
  if (memory?.usage !== undefined && memory.limit !== undefined) {
    const droppable = memory.stats?.total_inactive_file ?? memory.stats?.inactive_file ?? 0;
    if (memory.usage - droppable > memory.limit - startBytes) return 'memory';
  }
  if (pids?.current !== undefined && pids.limit !== undefined && pids.current >= pids.limit - reservedPids) {
    return 'processes';
  }
  return null;
}
