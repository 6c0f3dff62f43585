/** Provides the gate's tests with a policy, tools that touch what their arguments name, and a gate over both. */

import type { JsonObject } from '../kit/json.ts'
import type { Call } from '../runtime/event.ts'
import type { Schema, Tool } from '../runtime/port.ts'
import { createGate, type Gate, type GateOptions } from './gate.ts'
import { definePolicy, type Policy } from './policy.ts'

/** Returns a policy of the usual levels for the folder /home/u/ws, with empty lists, except for these fields. */
export function policyWith(fields: Partial<Policy> = {}): Policy {
  return definePolicy({
    autonomy: 'supervised',
    workspace: '/home/u/ws',
    workspaceOnly: true,
    forbiddenPaths: [],
    forbiddenCommands: [],
    allowCommands: [],
    allowedDomains: [],
    allowedPorts: [],
    protectedPaths: [],
    approveAllMedium: false,
    ask: 'changes',
    unlistedCommands: 'ask',
    readonlyCommands: 'block',
    egress: 'ask',
    direct: 'ask',
    toolSettings: 'ask',
    home: '/home/u',
    ...fields,
  })
}

const policy = policyWith({
  forbiddenPaths: ['/etc', '/home/u/ws/vault'],
  forbiddenCommands: ['rm', 'shutdown', 'reboot', 'mkfs', 'dd'],
  allowCommands: ['ls', 'pwd', 'cat', 'git', 'touch', 'echo'],
  allowedDomains: ['example.com'],
  protectedPaths: ['/home/u/.braidclaw'],
})

const pathSchema: Schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }

export function tool(name: string, fields: Partial<Tool> = {}): Tool {
  const parameters: Schema = { type: 'object' }
  const invoke = async () => ({ success: true, output: '' })
  return { name, description: '', parameters, risk: 'low', timeoutMs: 1, idempotent: true, touches: () => [], invoke, ...fields }
}

export const tools: readonly Tool[] = [
  tool('time'),
  tool('file_read', { parameters: pathSchema, touches: ({ path }) => [{ kind: 'path', path: String(path), access: 'read' }] }),
  tool('file_write', { parameters: pathSchema, touches: ({ path }) => [{ kind: 'path', path: String(path), access: 'write' }] }),
  tool('shell', {
    touches: ({ command, cwd }) => [{ kind: 'command', command: String(command), ...(typeof cwd === 'string' ? { cwd } : {}) }],
  }),
  tool('http', { touches: ({ url, method }) => [{ kind: 'url', url: String(url), method: String(method ?? 'GET') }] }),
  tool('copy', {
    touches: ({ from, to }) => [
      { kind: 'path', path: String(from), access: 'read' },
      { kind: 'path', path: String(to), access: 'write' },
    ],
  }),
  tool('plugin', { risk: 'medium' }),
  tool('nuke', { risk: 'high' }),
  tool('thrower', {
    touches: () => {
      throw new Error('boom \u001b[2J')
    },
  }),
]

export function gateOf(fields: Partial<Policy> = {}, options: Partial<GateOptions> = {}): Gate {
  const resolve = (name: string) =>
    ['ls', 'pwd', 'cat', 'git', 'touch', 'echo', 'rm', 'python3'].includes(name) ? `/usr/bin/${name}` : undefined
  return createGate({
    policy: definePolicy({ ...policy, ...fields }),
    tools,
    estop: () => undefined,
    resolve,
    conversation: 'c1',
    ...options,
  })
}

export function callOf(name: string, input: JsonObject = {}): Call {
  return { id: 'call_1', name, input }
}

export async function said(
  name: string,
  input: JsonObject = {},
  fields: Partial<Policy> = {},
  options: Partial<GateOptions> = {},
): Promise<string> {
  const { verdict, risk, rule } = await gateOf(fields, options).judge(callOf(name, input))
  return `${verdict} ${risk} ${rule}`
}
