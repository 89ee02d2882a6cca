/** Harbor's `${NAME}` and `${NAME:-value}`, as the whole of a value: a variable of the host that runs the task. */
const template = /^\$\{([^}:]+)(?::-([^}]*))?\}$/;

/** What stands behind `:-`: nothing of a host's environment enters a sandbox. */
export const withDefault = (value: string): string => template.exec(value)?.[2] ?? value;

/** Has it nothing to fall back on? */
export const isOfHost = (value: string): boolean => template.test(value);
