import process from 'node:process';
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/server/validators/cf-worker';

/**
 * Stands in for the MCP package's own platform module in the build. That one brings Ajv, which compiles its meta-schemas
 * at every start; the only thing validated with it here is a person's answer to a small form.
 */
export { CfWorkerJsonSchemaValidator as DefaultJsonSchemaValidator, process };
