import { expect, test } from 'bun:test'
import type { JsonObject } from '../kit/json.ts'
import type { Tool } from '../runtime/port.ts'
import { explainCall, explainCommand } from './explain.ts'
import { policyWith } from './gate.fixture.ts'

const policy = policyWith({ forbiddenCommands: ['rm'], allowCommands: ['ls', 'touch'], toolsAllow: ['file_write'] })

const fileWrite: Tool = {
  name: 'file_write',
  description: '',
  parameters: { type: 'object' },
  risk: 'medium',
  timeoutMs: 1,
  idempotent: true,
  touches: ({ path }) => [{ kind: 'path', path: String(path), access: 'write' }],
  invoke: async () => ({ success: true, output: '' }),
}

const options = {
  policy,
  tools: [fileWrite],
  estop: () => undefined,
  resolve: (name: string) => `/usr/bin/${name}`,
  conversation: 'explain',
}

test('a blocked command is blocked at every level and has no plan', async () => {
  const said = await explainCommand(options, 'rm -rf /')
  expect(said).toMatchObject({ verdict: 'deny', risk: 'high', plan: undefined })
  expect(Object.values(said.levels).map((level) => level.verdict)).toEqual(['deny', 'deny', 'deny', 'deny'])
})

test('a command is explained even when the channel has no shell, with what each level would do and what would run', async () => {
  const said = await explainCommand(options, 'touch "a b"')
  expect(said).toMatchObject({
    verdict: 'ask',
    risk: 'medium',
    rule: 'autonomy.medium_asks',
    meaning: 'autonomy is supervised: medium risk needs a yes.',
  })
  expect(said.levels).toMatchObject({
    readonly: { verdict: 'deny', rule: 'autonomy.readonly' },
    supervised: { verdict: 'ask' },
    full: { verdict: 'allow' },
  })
  expect(said.plan?.commands[0]).toEqual({
    plan: { kind: 'argv', argv: ['touch', 'a b'], executable: '/usr/bin/touch' },
    cwd: '/home/u/ws',
  })
})

test('a high-risk command shows the plan that only full would run', async () => {
  const said = await explainCommand(options, 'unheard-of x')
  expect(said).toMatchObject({ verdict: 'deny', risk: 'high', levels: { full: { verdict: 'allow' } } })
  expect(said.plan).toBeDefined()
})

test('a command is explained where it would start', async () => {
  expect((await explainCommand(options, 'ls', 'sub')).plan?.commands[0]?.cwd).toBe('/home/u/ws/sub')
  expect(await explainCommand(options, 'ls', '/etc')).toMatchObject({ verdict: 'deny', rule: 'path.outside_workspace' })
})

test('a call of a tool is explained the same way', async () => {
  expect(await explainCall(options, { name: 'file_write', input: { path: '../x' } })).toMatchObject({
    verdict: 'deny',
    rule: 'path.outside_workspace',
  })
  const said = await explainCall(options, { name: 'file_write', input: { path: 'x' } })
  expect(said).toMatchObject({
    verdict: 'ask',
    reason: 'writes to workspace',
    writes: ['/home/u/ws/x'],
    summary: 'file_write: write /home/u/ws/x',
  })
  expect(await explainCall(options, { name: 'shell', input: {} })).toMatchObject({ verdict: 'deny', rule: 'tool.unknown' })
})

test('the command that is explained is held to the arguments of a shell, and to its folder', async () => {
  const shell = (input: JsonObject) => explainCall({ ...options, policy: { ...policy, toolsAllow: undefined } }, { name: 'shell', input })
  expect(await shell({ command: 'ls' })).toMatchObject({ verdict: 'deny', rule: 'tool.unknown' })
  expect(await explainCommand(options, 'touch x', '/etc')).toMatchObject({ verdict: 'deny', rule: 'path.outside_workspace' })
  const below = await explainCommand(options, 'touch x', 'src')
  expect(below.writes).toEqual(['/home/u/ws/src/x'])
  expect(below.plan?.input).toEqual({ command: 'touch x', cwd: 'src' })
  expect((await explainCommand(options, 'touch x')).plan?.input).toEqual({ command: 'touch x' })
})
