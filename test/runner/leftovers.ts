import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** The variable in the environment of every process that a test run starts, and so of those that it forgets to stop. */
export const testRunVariable = 'TEMPER_TEST_RUN';

/** The looks at processes that were asked to end, and the pause after each. A machine that stands still costs none of the looks. */
const looks = 100;
const pauseMs = 100;

/** Kills the processes that the test run `id` left behind and returns their command lines. Finds them on Linux only. */
export async function killLeftovers(id: string): Promise<string[]> {
  await waitUntilEnded(id);
  const left = await processesOf(id);
  for (const { pid } of left) kill(pid);
  await waitUntilEnded(id);
  return left.map(({ pid, command }) => `${pid} ${command}`);
}

/** Waits until processes that were asked to end have ended. */
async function waitUntilEnded(id: string): Promise<void> {
  for (let look = 0; look < looks && (await processesOf(id)).length > 0; look += 1) await sleep(pauseMs);
}

async function processesOf(id: string): Promise<{ readonly pid: number; readonly command: string }[]> {
  const names = await readdir('/proc').catch(() => []);
  const found = [];
  for (const name of names.filter((entry) => /^\d+$/.test(entry))) {
    const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '');
    if (Number(name) === process.pid || !environment.split('\0').includes(`${testRunVariable}=${id}`)) continue;
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
