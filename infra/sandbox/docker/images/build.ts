import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { BuildFailure, SandboxFailure } from '../../failure.ts';
import { type FileTree, packTree } from '../../files.ts';
import type { BuildContext, ReportImage } from '../../image.ts';
import { callDaemon, fullDisk } from '../daemon.ts';
import { createBoundedLog } from './bounded-log.ts';
import type { BuildNetwork } from './build-network.ts';
import { daemonEvents } from './daemon-events.ts';

/** The label with the stack that built an image. It differs from `stackLabel` because containers inherit their image's labels. */
export const builderLabel = 'temper.built-by';

const memoryBytes = 4 * 2 ** 30;
const cpuPeriodUs = 100_000;
const cpus = 2;
const dockerfileName = 'Dockerfile';
const quotedCharacters = 160;
const quotedHosts = 5;

export interface Build {
  readonly task: string;
  readonly tag: string;
  readonly context: BuildContext;
  readonly stack: string;
  readonly network: BuildNetwork;
}

/**
 * Builds an image from a task's Dockerfile, which is untrusted: the build is bounded in time, memory, processors and output. Only the
 * daemon's own builder takes those limits; BuildKit has none for a single build. Throws a `BuildFailure` if the Dockerfile is at
 * fault.
 */
export async function buildImage(
  docker: Docker,
  build: Build,
  report: ReportImage,
  signal: AbortSignal,
): Promise<void> {
  const { task, tag, context, stack, network } = build;
  const limit = AbortSignal.timeout(context.timeoutSec * 1_000);
  const ending = AbortSignal.any([signal, limit]);
  const log = createBoundedLog();
  const failed = (got: string, cause?: unknown): BuildFailure => {
    const output = log.end(quotedCharacters);
    const hint = networkHint(build);
    const message = `could not build the image of task ${task}${hint}: ${got}; last output: ${output}`;
    return new BuildFailure(message, log.bytes(), { cause });
  };
  const options = {
    t: tag,
    networkmode: network.mode,
    buildargs: network.args,
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
    for await (const { stream: output, error } of daemonEvents(stream, ending)) {
      log.push(output ?? error ?? '');
      const [, step, of, line] = /^Step (\d+)\/(\d+) : (.*)/.exec(output ?? '') ?? [];
      if (step !== undefined) report({ image: tag, doing: 'building', step: `${step}/${of} ${line?.slice(0, 120)}` });
      if (error !== undefined) throw hostFailure(error) ?? failed(error);
    }
  } catch (error) {
    if (signal.aborted || error instanceof SandboxFailure || error instanceof BuildFailure) throw error;
    if (limit.aborted)
      throw failed(`it took longer than ${context.timeoutSec} s (environment.build_timeout_sec)`, error);
    throw isRejection(error) ? failed(error.message, error) : error;
  }
}

/** Says what a failed build may have lacked. */
function networkHint({ network, context }: Build): string {
  if (network.mode === 'none') {
    const mode = context.network?.mode ?? 'public';
    return ` (its commands have no network; set TEMPER_NETWORK=${mode} if they need one)`;
  }
  const refused = network.refused();
  return refused.length === 0 ? '' : ` (its network refused ${refused.slice(0, quotedHosts).join(', ')})`;
}

/** The failure of the host, if it is one. A failed command is not: its error may quote any text. */
const hostFailure = (error: string): SandboxFailure | undefined =>
  /returned a non-zero code: \d+$/.test(error.trim()) ? undefined : fullDisk(new Error(error));

/** Whether the daemon rejected the build before it began, because it can't read the Dockerfile. */
const isRejection = (error: unknown): error is Error =>
  error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';

/**
 * Adds the last lines, and labels every stage with the stack, so that the leftovers of a build can be recognised even if it fails.
 */
function labelled({ files, stageLines, lastLines = [] }: BuildContext, stack: string): FileTree {
  const text = new TextDecoder().decode(files.get(dockerfileName)?.bytes);
  const lines = lastLines.length === 0 ? text.split('\n') : [...closedLines(text), ...lastLines];
  const label = `LABEL ${builderLabel}=${JSON.stringify(stack)}`;
  const marked = lines.flatMap((line, index) => (stageLines.includes(index + 1) ? [line, label] : [line]));
  return new Map([...files, [dockerfileName, { mode: 0o644, bytes: Buffer.from(marked.join('\n')) }]]);
}

/**
 * Returns the lines of a Dockerfile up to the end of its last instruction. A backslash there would take the next line, also over
 * comments.
 */
function closedLines(text: string): string[] {
  const lines = text.split('\n');
  for (let last = lines.pop(); last !== undefined; last = lines.pop()) {
    let end = last.length;
    while (/[\\\s]/.test(last[end - 1] ?? '')) end -= 1;
    const line = last.slice(0, end);
    if (line !== '' && !/^\s*#/.test(line)) return [...lines, line];
  }
  return [];
}
