/** Building an image from a task's Dockerfile, which nobody vouches for: bounded in time, memory and output. */
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { BuildFailure, SandboxFailure } from '../../failure.ts';
import { type FileTree, packTree } from '../../files.ts';
import type { BuildContext, ReportImage } from '../../image.ts';
import { callDaemon, fullDisk } from '../daemon.ts';
import { builderLabel } from '../labels.ts';
import { BoundedLog } from './bounded-log.ts';
import { eventsOf } from './events.ts';

const memoryBytes = 4 * 2 ** 30;
const cpuPeriodUs = 100_000;
const cpus = 2;
const dockerfileName = 'Dockerfile';
const lastWordsLength = 160;

export interface Build {
  readonly task: string;
  readonly tag: string;
  readonly context: BuildContext;
  readonly stack: string;
  /** Of its commands: `none`, or the name of a Docker network. */
  readonly network: string;
}

/** The image is there under its tag when this returns. */
export async function buildImage(
  docker: Docker,
  build: Build,
  report: ReportImage,
  signal: AbortSignal,
): Promise<void> {
  const { task, tag, context, stack, network } = build;
  const limit = AbortSignal.timeout(context.timeoutSec * 1_000);
  const ending = AbortSignal.any([signal, limit]);
  const log = new BoundedLog();
  const failed = (got: string, cause?: unknown): BuildFailure => {
    const hint = network === 'none' ? ', and its commands have no network (TEMPER_BUILD_NETWORK)' : '';
    const said = log.lastWords(lastWordsLength);
    const message = `environment/Dockerfile of task ${task}: expected an image${hint}, got ${got}; last words: ${said}`;
    return new BuildFailure(message, log.bytes(), { cause });
  };
  const options = {
    t: tag,
    networkmode: network,
    memory: memoryBytes,
    memswap: memoryBytes,
    cpuperiod: cpuPeriodUs,
    cpuquota: cpuPeriodUs * cpus,
    forcerm: true,
    abortSignal: ending,
  };
  const tar = await packTree(labelled(context, stack), { uid: 0, gid: 0 });
  try {
    report({ image: tag, doing: 'building' });
    const stream = await callDaemon(() => docker.buildImage(Readable.from([tar]), options));
    for await (const { stream: said, error } of eventsOf(stream, ending)) {
      log.push(said ?? error ?? '');
      const [, step, of, line] = /^Step (\d+)\/(\d+) : (.*)/.exec(said ?? '') ?? [];
      if (step !== undefined) report({ image: tag, doing: 'building', step: `${step}/${of} ${line?.slice(0, 120)}` });
      if (error !== undefined) throw failureOf(error) ?? failed(error);
    }
  } catch (error) {
    if (signal.aborted || error instanceof SandboxFailure || error instanceof BuildFailure) throw error;
    if (limit.aborted) throw failed(`no end within ${context.timeoutSec} s (environment.build_timeout_sec)`, error);
    throw isRefusal(error) ? failed(error.message, error) : error;
  }
}

/** The host's doing, unless a command failed: its text would stand in the daemon's words. */
const failureOf = (error: string): SandboxFailure | undefined =>
  /returned a non-zero code: \d+$/.test(error.trim()) ? undefined : fullDisk(new Error(error));

/** The daemon did not begin: the file itself is none that it can read. */
const isRefusal = (error: unknown): error is Error =>
  error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';

/** Every stage says whose it is, so that what a build leaves behind, failed ones too, is known as ours. */
function labelled({ files, stageLines }: BuildContext, stack: string): FileTree {
  const entry = files.get(dockerfileName);
  const lines = new TextDecoder().decode(entry?.bytes).split('\n');
  const label = `LABEL ${builderLabel}=${JSON.stringify(stack)}`;
  const marked = lines.flatMap((line, index) => (stageLines.includes(index + 1) ? [line, label] : [line]));
  return new Map([...files, [dockerfileName, { mode: 0o644, bytes: Buffer.from(marked.join('\n')) }]]);
}
