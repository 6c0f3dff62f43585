/** Tests external tools behind the gate: what an approval is bound to, and what is offered after a change. Real sandbox, real files. */

import { test as always, expect } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import type { Call, Judgement } from '../../runtime/event.ts'
import { createHostContext } from '../setup/context.ts'
import { policyOf } from '../setup/effective-policy.ts'
import { loadSetup } from '../setup/setup.ts'
import type { ToolSelection } from './contract.ts'
import { executablesFrom } from './executable-tools.ts'
import { createToolRuntime } from './tool-executor.ts'

const test = always.if(needs('bwrap'))

/** The host knows no channel itself: its opener passes the channels. */
const channels = [{ name: 'cli', settings: { tools_allow: { type: 'words', form: 'tool', about: 'The tools offered.' } } }] as const

async function stage(config = '', request?: (setup: ReturnType<typeof loadSetup>, tools: string) => ToolSelection) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-hands-')))
  const [home, workspace, tools] = [join(root, 'home'), join(root, 'ws'), join(root, 'home/.braidclaw/tools')]
  for (const path of [workspace, tools]) mkdirSync(path, { recursive: true })
  writeFileSync(join(home, '.braidclaw/config.toml'), `workspace_dir = "${workspace}"\n${config}`)
  const context = createHostContext({ env: { HOME: home, BRAIDCLAW_LOG: 'off' }, channels, say: () => {} })
  const setup = loadSetup({ ...context, cwd: workspace })
  const put = (name: string, body: string) => {
    const text = `#!/bin/sh\nif [ "$1" = --describe ]; then echo '{"name":"${name}","description":"d","parameters":{"type":"object"}}'; exit; fi\n${body}\n`
    writeFileSync(join(tools, name), text)
    chmodSync(join(tools, name), 0o755)
  }
  put('mark', 'echo v1; touch ran-v1')
  const made = await createToolRuntime({
    setup,
    policy: policyOf(setup.config, setup.paths, setup.context.env),
    conversationId: 'c',
    tools: request?.(setup, tools) ?? { builtIn: ['time'], more: executablesFrom(setup, { at: tools }) },
  })
  const act = (call: Call, judgement: Judgement) => made.act({ type: 'act', id: call.id, call, judgement }, new AbortController().signal)
  const close = () => {
    made.close()
    rmSync(root, { recursive: true, force: true })
  }
  return { toolRuntime: made, put, act, workspace, tools, [Symbol.dispose]: close }
}

const mark: Call = { id: 'call_1', name: 'mark', input: {} }

test('a file that is swapped after the yes does not run: approval.stale', async () => {
  using at = await stage()
  const yes = await at.toolRuntime.judge(mark)
  expect([yes.verdict, yes.risk]).toEqual(['ask', 'medium'])
  at.put('mark', 'echo v2; touch ran-v2')
  expect(await at.act(mark, yes)).toMatchObject({ status: 'denied', error: expect.stringContaining('approval.stale: ') })
  expect(['ran-v1', 'ran-v2'].filter((name) => existsSync(join(at.workspace, name)))).toEqual([])
  expect(await at.toolRuntime.judge(mark)).toMatchObject({ verdict: 'deny', rule: 'tool.changed' })
})

test('the plan and the line that is asked name the file and its bytes', async () => {
  using at = await stage()
  const first = await at.toolRuntime.judge(mark)
  expect(first.summary).toMatch(/^mark: \{\} \[.*\/tools\/mark, sha256 [0-9a-f]{12}\]$/)
  expect((await at.toolRuntime.judge(mark)).plan).toBe(first.plan)
  at.put('mark', 'echo v2')
  await at.toolRuntime.refresh()
  const second = await at.toolRuntime.judge(mark)
  expect([second.verdict, second.plan === first.plan]).toEqual(['ask', false])
  expect(await at.act(mark, first)).toMatchObject({ status: 'denied', error: expect.stringContaining('approval.stale') })
  expect(await at.act(mark, second)).toMatchObject({ status: 'allowed', output: 'v2\n' })
})

test('"always" is said to these bytes, not to the name', async () => {
  using at = await stage()
  const proposal = { call: mark, judgement: await at.toolRuntime.judge(mark) }
  at.toolRuntime.allowAlways(proposal)
  expect(at.toolRuntime.isStanding(proposal)).toBe(true)
  at.put('mark', 'echo v2')
  await at.toolRuntime.refresh()
  expect(at.toolRuntime.isStanding({ call: mark, judgement: await at.toolRuntime.judge(mark) })).toBe(false)
})

test('between two turns new, changed and removed files are noticed, and nothing else makes a new gate', async () => {
  using at = await stage()
  const gate = await at.toolRuntime.gate()
  await at.toolRuntime.refresh()
  expect(await at.toolRuntime.gate()).toBe(gate)
  at.put('more', 'echo more')
  expect((await at.toolRuntime.refresh()).map(({ name }) => name)).toEqual(['time', 'mark', 'more'])
  rmSync(join(at.tools, 'mark'))
  expect((await at.toolRuntime.refresh()).map(({ name }) => name)).toEqual(['time', 'more'])
  expect(await at.toolRuntime.judge(mark)).toMatchObject({ verdict: 'deny', rule: 'tool.unknown' })
})

test('a tool is confined: no network, no secrets of ours, its own folder read-only, the workspace a private view', async () => {
  using at = await stage('[security]\nautonomy = "full"\n')
  writeFileSync(join(at.tools, 'beside.txt'), 'beside\n')
  at.put(
    'look',
    `d=\${0%/*}; cat "$d/beside.txt"; echo in >made
echo x >"$d/beside.txt" || echo 'folder is read-only'; echo x >"$0" || echo 'itself too'
cat "$d/../config.toml" || echo 'no config'; ls "$d/../run" || echo 'no copies'
exec 3<>/dev/tcp/127.0.0.1/1 || echo 'no network'; env | grep -ci key; echo "$HOME"`.replaceAll(
      'exec 3<>/dev/tcp/127.0.0.1/1',
      'wc -l </proc/net/tcp | grep -q "^[02-9]"',
    ),
  )
  await at.toolRuntime.refresh()
  const call = { ...mark, name: 'look' }
  const judgement = await at.toolRuntime.judge(call)
  const { changes: review, ...ran } = await at.act(call, judgement)
  const { output } = ran
  expect(output.split('\n')).toEqual([
    'beside',
    'folder is read-only',
    'itself too',
    'no config',
    'no copies',
    'no network',
    '0',
    expect.any(String),
    '',
  ])
  expect(existsSync(join(at.workspace, 'made'))).toBe(false)
  if (review === undefined) throw new Error('it changed nothing')
  expect(review).toMatchObject({ verdict: 'apply', count: 1, summary: expect.stringContaining('made') })
  const apply = { type: 'apply', id: call.id, call, judgement, review } as const
  const done = await at.toolRuntime.changes.apply(apply, new AbortController().signal, ran)
  expect(done).toMatchObject({ status: 'allowed', metadata: { changes: review.digest, sandbox: 'bubblewrap' } })
  expect(existsSync(join(at.workspace, 'made'))).toBe(true)
})

test('where nothing may be written, a tool of low risk finds the workspace read-only', async () => {
  using at = await stage('[security]\nautonomy = "readonly"\nallow_tools = ["mark"]\n')
  expect(await at.toolRuntime.judge({ ...mark, name: 'time' })).toMatchObject({ verdict: 'allow' })
  const judged = await at.toolRuntime.judge(mark)
  expect(judged).toMatchObject({ verdict: 'allow', risk: 'low' })
  await at.act(mark, judged)
  expect(existsSync(join(at.workspace, 'ran-v1'))).toBe(false)
})

test('what is offered besides is nothing that tools_allow must name; what it leaves out of the built-in stays out', async () => {
  using at = await stage('[channels.cli]\ntools_allow = ["file_read"]\n')
  expect(at.toolRuntime.tools.map(({ name }) => name)).toEqual(['mark'])
  expect(await at.toolRuntime.judge({ ...mark, name: 'time' })).toMatchObject({ verdict: 'deny', rule: 'tool.not_allowed' })
})
