import { killedCode } from '../exit-status.ts';
import { packTree } from '../files.ts';
import type { PutFiles } from '../sandbox.ts';
import { cannotMake, tarKilled, unpackFailure } from './files.ts';
import type { Script, Shell } from './shell.ts';
import { untilUnkilled } from './unread.ts';
import { untilStarted } from './until-started.ts';

/**
 * Starts a detached command and returns once it runs, which `live` reports. A tar of its files is sent on its stdin, because a
 * command of their own would cost as much as starting it.
 */
export async function launch(
  shell: Shell,
  script: Script,
  files: PutFiles | undefined,
  live: Promise<void>,
): Promise<void> {
  if (files === undefined) {
    await untilStarted(() => shell.start(script));
    return live;
  }
  const uid = shell.uidOf(files.owner);
  const stdin = await packTree(files.tree, { uid, gid: uid });
  const attempt = async (): Promise<number | undefined> => {
    const { detached, release } = await shell.start({ ...script, stdin });
    try {
      return await Promise.race([live.then(() => undefined), detached]);
    } finally {
      release();
    }
  };
  // A shell that is killed may have begun the command, unlike one whose tar is.
  const started = () =>
    untilUnkilled(
      () => untilStarted(attempt),
      (code) => code === tarKilled,
    );
  let code = await started();
  if (code === cannotMake) {
    await shell.makeDirectory(files.at, files.owner);
    code = await started();
  }
  if (code !== undefined && code !== 0) {
    throw await unpackFailure(shell, files, { exitCode: code === tarKilled ? killedCode : code, stderr: '' });
  }
  return live;
}
