import type { PythonPackage } from '../../helpers/python-packages.ts';

/** The official package of OpenEnv, with what its client and its server need, and without its web interface. */
export const openEnvCore: PythonPackage = {
  name: 'openenv-core',
  version: '0.3.0',
  needed: ['fastapi', 'fastmcp-slim[client]', 'pydantic', 'requests', 'uvicorn', 'websockets'],
};
