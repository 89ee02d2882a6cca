import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Makes an image of the tests again, and removes the one that it replaces, which would stay without a name. */
export async function replaceImage(image: string, make: () => Promise<unknown>): Promise<void> {
  const before = await idOf(image);
  await make();
  if (before === null || before === (await idOf(image))) return;
  // A container may still use it.
  await run('docker', ['image', 'rm', before]).catch(() => undefined);
}

/** Returns the id of an image; null if Docker does not have it. */
const idOf = (image: string): Promise<string | null> =>
  run('docker', ['image', 'inspect', '--format', '{{.Id}}', image]).then(
    ({ stdout }) => stdout.trim(),
    () => null,
  );
