import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** In the environment of everything that a test run starts, and so of what it forgets to stop. */
export const TEST_RUN_VARIABLE = 'TEMPER_TEST_RUN';

const GRACE_MS = 3_000;
const POLL_MS = 100;

/** Kills what the test run `id` left behind and says what it was. Linux only: elsewhere nothing is found. */
export async function killLeftovers(id: string): Promise<string[]> {
  await untilNone(id);
  const left = await processesOf(id);
  for (const { pid } of left) kill(pid);
  await untilNone(id);
  return left.map(({ pid, command }) => `${pid} ${command}`);
}

/** What was told to end needs a moment for it. */
async function untilNone(id: string): Promise<void> {
  const deadline = Date.now() + GRACE_MS;
  while ((await processesOf(id)).length > 0 && Date.now() < deadline) await sleep(POLL_MS);
}

async function processesOf(id: string): Promise<{ readonly pid: number; readonly command: string }[]> {
  const names = await readdir('/proc').catch(() => []);
  const found = [];
  for (const name of names.filter((entry) => /^\d+$/.test(entry))) {
    const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '');
    if (Number(name) === process.pid || !environment.split('\0').includes(`${TEST_RUN_VARIABLE}=${id}`)) continue;
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    if (command !== '') found.push({ pid: Number(name), command: command.replaceAll('\0', ' ').trim() });
  }
  return found;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    const ended = error instanceof Error && 'code' in error && error.code === 'ESRCH';
    if (!ended) throw error;
  }
}
