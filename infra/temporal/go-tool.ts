import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const reportIntervalMs = 10_000;
const keptLines = 20;

/**
 * A Go module that builds one tool; its `go.mod` and `go.sum` pin every source of the executable. It is built from source
 * because closed networks often have a Go module proxy but cannot download prebuilt binaries.
 */
export interface GoTool {
  readonly name: string;
  /** The directory of the tool's go.mod. */
  readonly module: string;
  readonly mainPackage: string;
  readonly linkerFlags: string;
  /** Approximate build time on two cores without a cache. */
  readonly minutes: number;
}

export interface GoBuildOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly progress: (line: string) => void;
}

/** Builds the tool with the machine's `go` and renames it to `target`, so that a partial executable is never visible. */
export async function buildGoTool(
  tool: GoTool,
  target: string,
  context: GoBuildOptions,
  signal?: AbortSignal,
): Promise<void> {
  const scratch = await mkdtemp(`${target}.build-`);
  const executable = join(scratch, tool.name);
  try {
    context.progress(`building ${tool.name} with go: about ${tool.minutes} minutes the first time`);
    await runGo(tool, executable, context, signal);
    await rename(executable, target);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function runGo(
  tool: GoTool,
  executable: string,
  { env, progress }: GoBuildOptions,
  signal?: AbortSignal,
): Promise<void> {
  const flags = ['-v', '-trimpath', '-mod=readonly', '-ldflags', tool.linkerFlags];
  const child = spawn('go', ['build', ...flags, '-o', executable, tool.mainPackage], {
    cwd: tool.module,
    env: { ...env, GOWORK: 'off', CGO_ENABLED: '0' },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(signal === undefined ? {} : { signal }),
  });
  const startedAt = Date.now();
  const lines: string[] = [];
  const report = setInterval(() => {
    const seconds = Math.round((Date.now() - startedAt) / 1000);
    progress(`building ${tool.name}: ${seconds} s, ${lines.length} modules and packages so far`);
  }, reportIntervalMs);
  const read = (async () => {
    for await (const line of createInterface({ input: child.stderr })) lines.push(line);
  })();
  try {
    const [code] = await once(child, 'close');
    await read;
    if (code !== 0) {
      throw new Error(`go build of ${tool.name} ended with ${code}: ${lines.slice(-keptLines).join('\n')}`);
    }
  } finally {
    clearInterval(report);
  }
}
