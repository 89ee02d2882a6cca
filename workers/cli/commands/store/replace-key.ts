import { type JsonOption, runningConfigOf } from '../../stack/command.ts';
import { confirm } from '../../text/confirm.ts';
import { print, printJson } from '../../text/output.ts';

export interface ReplaceKeyOptions extends JsonOption {
  readonly yes?: true;
}

/** Makes the key that this machine has the only one of its stack. */
export async function replaceKey(options: ReplaceKeyOptions): Promise<void> {
  const { replaceStackKeys } = await import('../../../../infra/stack.ts');
  const { openObjects } = await import('../../../../infra/store/shared-state.ts');
  const config = await runningConfigOf(options);
  const objects = await openObjects(config.store);
  if (options.yes !== true) {
    const question = `Make the key of this machine the only one of the stack in ${objects.location}? Hosts with another key do not start any more.`;
    await confirm(question, 'the keys of the stack stay as they are');
  }
  const stack = await replaceStackKeys(config, objects);
  if (options.json) return printJson({ stack, store: objects.location });
  print(`the key of this machine is the only one of stack ${stack} in ${objects.location}; give it to every host`);
}
