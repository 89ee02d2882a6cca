import type { Config } from '../../../../infra/settings/config.ts';
import { type JsonOption, runningConfigOf } from '../../stack/command.ts';
import { confirm } from '../../text/confirm.ts';
import { note, print, printJson } from '../../text/output.ts';

export interface ReplaceKeyOptions extends JsonOption {
  readonly yes?: true;
}

/** Makes the key that this machine has the only one of its stack. */
export async function replaceKey(options: ReplaceKeyOptions): Promise<void> {
  const { replaceStackKeys } = await import('../../../../infra/stack.ts');
  const { openObjects } = await import('../../../../infra/store/shared-state.ts');
  const config = await runningConfigOf(options);
  const objects = await openObjects(config.store);
  const key = await originOf(config);
  if (options.yes !== true) {
    const question = `Make ${key} the only one of the stack in ${objects.location}? Hosts with another key do not start any more.`;
    await confirm(question, 'the keys of the stack stay as they are');
  }
  const stack = await replaceStackKeys(config, objects);
  if (options.json) return printJson({ stack, store: objects.location, key });
  print(`${key} is the only one of stack ${stack} in ${objects.location} now`);
  note('give it to every host');
}

/** Returns where the key of this machine comes from: a shell may lack the setting by which the stack was started. */
async function originOf({ env, paths, stackKeys }: Config): Promise<string> {
  const { exists } = await import('../../../../infra/process/exists.ts');
  if (stackKeys !== null) return `the key in ${env.TEMPER_STACK_KEY_FILE ?? 'TEMPER_STACK_KEY'}`;
  return `${(await exists(paths.stackKey)) ? 'the key' : 'a new key'} in ${paths.stackKey}`;
}
