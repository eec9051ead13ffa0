export type { Principal as HubPrincipal, Role } from '../engine/principal.ts';
