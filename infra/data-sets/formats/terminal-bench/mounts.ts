import { posix } from 'node:path';
import { z } from 'zod';
import type { Reject } from './limits.ts';

/** A file or directory of the task's own folder that a compose file mounts. */
export interface Mount {
  /** The path in the task's folder; empty for the folder itself. */
  readonly source: string;
  /** The absolute path in the container. */
  readonly target: string;
  readonly readOnly: boolean;
}

const bind = z.looseObject({
  type: z.literal('bind'),
  source: z.string(),
  target: z.string(),
  read_only: z.boolean().default(false),
});

/** Options of a mount that change nothing for files that are copied. */
const options = ['rw', 'ro', 'z', 'Z', 'cached', 'delegated', 'consistent'];
const expected = "a mount of a file or directory of the task's own folder, such as ./data:/data";

/** Matches `source:target[:options]`. A variable may contain a colon. */
const oneLine = /^((?:\$\{[^}]*\}|[^:])+?):((?:\$\{[^}]*\}|[^:])+)(?::([^:]+))?$/;

/** Whether a volume collects logs for terminal-bench's own harness, which is not needed here. */
const isLogMount = (source: string): boolean => /^\$\{?T_BENCH_TASK_(?:AGENT_)?LOGS_PATH\b/.test(source);

/** Reads one entry of `volumes`: a mount, or null for a volume that only collects logs. Throws what `reject` makes for others. */
export function readMount(
  volume: unknown,
  fill: (text: string, field: string) => string,
  reject: Reject,
): Mount | null {
  const refusal = (): Error => reject('volumes', expected, JSON.stringify(volume) ?? 'nothing');
  const written = typeof volume === 'string' ? inOneLine(volume) : (bind.safeParse(volume).data ?? null);
  if (written === null) throw refusal();
  if (isLogMount(written.source)) return null;
  const [source, target] = [fill(written.source, 'volumes'), fill(written.target, 'volumes')];
  const inside = posix.normalize(source).replace(/\/$/, '');
  const at = posix.normalize(target).replace(/(?<=.)\/$/, '');
  // A source without a dot is the name of a volume; one that leads out of the folder is a file of the host.
  const isOwn = /^\.(?:\/|$)/.test(source) && inside !== '..' && !inside.startsWith('../');
  if (!isOwn || !/^\/[^\0\n$]+$/.test(at)) throw refusal();
  return { source: inside === '.' ? '' : inside, target: at, readOnly: written.read_only };
}

/** Splits a volume that is written in one line; null if it is something else. */
function inOneLine(volume: string): z.output<typeof bind> | null {
  const [, source = '', target = '', rest = ''] = oneLine.exec(volume.trim()) ?? [];
  const given = rest.split(',').filter((option) => option !== '');
  if (source === '' || given.some((option) => !options.includes(option))) return null;
  return { type: 'bind', source, target, read_only: given.includes('ro') };
}
