/** Installs the checkout's npm packages when node_modules is missing or not what package-lock.json says. */
export function ensureDependencies(root: string): Promise<void>;

/** npm notes in node_modules what it put there, after everything else; a broken-off install has no such note. */
export function isInstalled(root: string): boolean;
