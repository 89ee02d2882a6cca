import { cpSync, existsSync, lstatSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { prepareDirectory } from './shared-directory.ts';

const names =
  /^(alternatives|ld\.so\.(cache|conf|conf\.d)|ssl|ca-certificates|pki|localtime|timezone|perl|python3.*|bash\.bashrc|profile|mime\.types|services|protocols|nsswitch\.conf)$/;
const secrets = /\/(private|ssl\/private|pki\/.*private.*)$/;
/** Files over which every sandbox mounts its own. */
const placeholders = ['passwd', 'group'];

/**
 * Returns the /etc of local commands, a directory below `root`: a copy of what programs need of the host's /etc (linker cache,
 * alternatives, certificates, language configuration) without its secrets. It is one copy because mounts dominate the cost of a
 * command. The copy is renewed when the host's /etc changes.
 */
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
