import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';

let program: Promise<string> | undefined;

/**
 * Returns the program that carries changes in a Pod, as one text: it travels with the command, so that it always fits the host that
 * sends it. Each module that it imports is a data URL.
 */
export function insideProgram(): Promise<string> {
  program ??= textOf(join(import.meta.dirname, `inside${extname(import.meta.filename)}`));
  return program;
}

const relativeImport = /(?<=^import [^;]*? from )'(\.\.?\/[^']+)'(?=;$)/gm;

async function textOf(path: string): Promise<string> {
  const source = await readFile(path, 'utf8');
  const text = path.endsWith('.ts') ? stripTypeScriptTypes(source) : source;
  const short = text.replaceAll(/^ *(\/\/|\/?\*).*$/gm, '').replaceAll(/\n\s+/g, '\n');
  const names = [...new Set([...short.matchAll(relativeImport)].map(([, name = '']) => name))];
  const urls = new Map<string, string>();
  for (const name of names) {
    const module = await textOf(join(path, '..', name));
    urls.set(name, `data:text/javascript;base64,${Buffer.from(module).toString('base64')}`);
  }
  return short.replaceAll(relativeImport, (_, name: string) => `'${urls.get(name)}'`);
}
