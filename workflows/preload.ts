/*
 * Loads the workflows' modules when a worker starts, so that all workflows share them. Otherwise each cached workflow has its
 * own copy, which takes 1.5 MB and 15 ms of CPU, most of it for the schemas. The modules hold no state (test/architecture.test.ts).
 */
import './index.ts';

/** A function of the bundler that returns a module by its path. */
interface ModulesOfFolder {
  (path: string): object;
  keys(): readonly string[];
}

declare global {
  interface ImportMeta {
    /** Finds the modules of a folder. Only the bundler defines it. */
    webpackContext(folder: string, options: { readonly recursive: boolean; readonly regExp: RegExp }): ModulesOfFolder;
  }
}

// The worker freezes what shared modules export, in depth, but skips an object that is frozen already. So the modules with
// schemas are frozen here, but not the schemas, because zod completes a schema at its first use.
const contracts = import.meta.webpackContext('./contracts', { recursive: false, regExp: /\.ts$/ });
for (const path of contracts.keys()) Object.freeze(contracts(path));
