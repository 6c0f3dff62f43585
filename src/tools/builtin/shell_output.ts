/**
 * Defines the tools for a command in the background: shell_output reads what it printed, and takes its changes when it has ended;
 * shell_stop ends it.
 */

import { objectSchema } from '../../kit/json.ts'
import type { ToolResult } from '../../runtime/port.ts'
import type { SpawnPlan } from '../process.ts'
import type { ToolKind } from '../tool-kind.ts'

/** The commands in the background of one conversation; every result is for the model. */
export type Jobs = {
  /** Returns after a short moment: with the end of the command if it has ended by then. An abort until then ends it. */
  start(plan: Omit<SpawnPlan, 'signal' | 'onOutput'>, about: Starting): Promise<ToolResult>
  /** `since`: the byte to continue from, otherwise where the last reading ended. `changes`: what it changed so far becomes a change set. */
  read(id: string, how: { readonly since?: number; readonly changes?: boolean }): Promise<ToolResult>
  stop(id: string): Promise<ToolResult>
}

export type Starting = { readonly command: string; readonly callId: string; readonly signal: AbortSignal }

export const noJobs: ToolResult = { success: false, output: '', error: 'no command can run in the background here' }

const parameters = objectSchema({ id: { type: 'string' }, since: { type: 'integer', minimum: 0 }, changes: { type: 'boolean' } }, 'id')

export const shellOutput = {
  name: 'shell_output',
  description: 'New output of a background command. changes: hand over its file changes now.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: false,
  touches: () => [],
  run: async ({ id, ...how }, _context, { jobs }) => jobs?.read(id, how) ?? noJobs,
} as const satisfies ToolKind<typeof parameters, { readonly jobs?: Jobs }>

const stopParameters = objectSchema({ id: { type: 'string' } }, 'id')

export const shellStop = {
  name: 'shell_stop',
  description: 'End a background command.',
  parameters: stopParameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: () => [],
  run: async ({ id }, _context, { jobs }) => jobs?.stop(id) ?? noJobs,
} as const satisfies ToolKind<typeof stopParameters, { readonly jobs?: Jobs }>
