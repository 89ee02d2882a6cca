/** Installs the checkout's npm packages unless node_modules matches package-lock.json. */
export function ensureDependencies(root: string): Promise<void>;

/** Whether the npm packages are installed. npm records them in node_modules last, so an interrupted install has no record. */
export function isInstalled(root: string): boolean;
