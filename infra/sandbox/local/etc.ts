/**
 * The /etc that local commands see: a copy of what programs need of the host's (the linker's cache, alternatives,
 * certificates, language configuration) and none of its secrets. One copy is one mount; mounts are what a command costs.
 */
import { cpSync, existsSync, lstatSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { prepareDirectory } from './prepared.ts';

const names =
  /^(alternatives|ld\.so\.(cache|conf|conf\.d)|ssl|ca-certificates|pki|localtime|timezone|perl|python3.*|bash\.bashrc|profile|mime\.types|services|protocols|nsswitch\.conf)$/;
const secrets = /\/(private|ssl\/private|pki\/.*private.*)$/;
/** Every sandbox shows its own in their place. */
const placeholders = ['passwd', 'group'];

/** The directory below `root` that holds the copy; made if the host's /etc is not copied as it is now. */
export function prepareEtc(root: string): string {
  const found = readdirSync('/etc').filter((name) => names.test(name) && existsSync(join('/etc', name)));
  const state = found.map((name) => `${name} ${lstatSync(join('/etc', name)).mtimeMs}`).join('\n');
  const fill = (staging: string): void => {
    for (const name of found) {
      const filter = (source: string): boolean => !secrets.test(source);
      cpSync(join('/etc', name), join(staging, name), { recursive: true, verbatimSymlinks: true, filter });
    }
    for (const name of placeholders) writeFileSync(join(staging, name), '');
  };
  return prepareDirectory(root, { name: 'etc', state, fill });
}
