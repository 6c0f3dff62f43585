/** Tests the tools of plugins behind the gate, as real children without a sandbox: what a yes covers, and what a change undoes. */

import { expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject } from '../../../../kit/json.ts'
import type { Judgement } from '../../../../runtime/event.ts'
import { createHostContext } from '../../../setup/context.ts'
import { policyOf } from '../../../setup/effective-policy.ts'
import { loadSetup } from '../../../setup/setup.ts'
import { createToolRuntime } from '../../tool-executor.ts'
import { everything } from '../../tools-option.ts'
import { openPlugins } from './plugins.ts'

async function stage(config = '') {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-plugin-')))
  const [user, workspace] = [join(root, 'home'), join(root, 'ws')]
  const home = join(user, '.braidclaw')
  for (const path of [workspace, home]) mkdirSync(path, { recursive: true })
  writeFileSync(join(home, 'config.toml'), `workspace_dir = "${workspace}"\n${config}`)
  const lines: string[] = []
  const context = createHostContext({ env: { HOME: user, API_KEY: 'q9f8e7d6c5b4' }, channels: [], say: (line) => void lines.push(line) })
  const setup = loadSetup({ ...context, cwd: workspace })
  const put = (name: string, body: string, more = '', tool = 'echo') => {
    const folder = join(home, 'plugins', name)
    mkdirSync(folder, { recursive: true })
    const table = `[[tools]]\nname = "${tool}"\ndescription = "d"\ncommand = "./run"\nschema = { type = "object" }\n`
    writeFileSync(join(folder, 'manifest.toml'), `name = "${name}"\nversion = "1"\ncapabilities = ["tool"]\n${table}${more}`)
    writeFileSync(join(folder, 'run'), `#!/bin/sh\n${body}\n`)
    chmodSync(join(folder, 'run'), 0o755)
  }
  const plugins = openPlugins(home)
  const approve = async (name: string) => {
    const plugin = plugins.find(name)
    if (plugin.state === 'broken') throw new Error(plugin.problems.join())
    await plugins.approve(name, plugin.files.digest)
  }
  const open = async () => {
    const policy = policyOf(setup.config, setup.paths, setup.context.env)
    return createToolRuntime({ setup, policy, conversationId: 'c', tools: everything(setup), sandbox: 'none' })
  }
  const on = (runtime: Awaited<ReturnType<typeof open>>) => ({
    judge: (input: JsonObject = {}, name = 'echo') => runtime.judge({ id: 'c1', name, input }),
    act: (judgement: Judgement, input: JsonObject = {}, name = 'echo') =>
      runtime.act({ type: 'act', id: 'c1', call: { id: 'c1', name, input }, judgement }, new AbortController().signal),
  })
  return {
    root,
    home,
    setup,
    lines,
    put,
    approve,
    plugins,
    open,
    on,
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

test('a yes is to these bytes: files that change after the question run nothing, and the old bytes never ran from the folder', async () => {
  using at = await stage('[security]\nautonomy = "full"\n')
  const ran = join(at.root, 'ran')
  at.put('p', 'cat')
  await at.approve('p')
  await using runtime = Object.assign(await at.open(), { [Symbol.asyncDispose]: () => runtime.close() })
  const { judge, act } = at.on(runtime)
  const yes = await judge()
  expect(yes.summary).toMatch(/^echo: \{\} \[.*\/plugins\/p\/run, sha256 [0-9a-f]{12}\]$/)
  at.put('p', `touch ${ran}; cat`)
  expect(await act(yes)).toMatchObject({ status: 'denied', error: expect.stringContaining('approval.stale') })
  expect(await judge()).toMatchObject({ verdict: 'deny', rule: 'tool.changed' })
  await at.approve('p')
  expect(await act(yes)).toMatchObject({ status: 'denied', error: expect.stringContaining('approval.stale') })
  expect(existsSync(ran)).toBe(false)
  await runtime.refresh()
  expect(await act(await judge({ a: 1 }), { a: 1 })).toMatchObject({ status: 'allowed', output: '{"a":1}' })
  expect(existsSync(ran)).toBe(true)
})

test('disabled or removed in another terminal it runs no more, also in an open conversation', async () => {
  using at = await stage('[security]\nautonomy = "full"\n')
  at.put('p', 'cat')
  await at.approve('p')
  const runtime = await at.open()
  const { judge, act } = at.on(runtime)
  const yes = await judge()
  await at.plugins.enable('p', false)
  expect(await act(yes)).toMatchObject({ status: 'denied', error: expect.stringContaining('plugin p was disabled or removed') })
  await at.plugins.enable('p', true)
  expect(await act(yes)).toMatchObject({ status: 'allowed' })
  await at.plugins.remove('p')
  expect(await act(yes)).toMatchObject({ status: 'denied', error: expect.stringContaining('disabled or removed') })
  await runtime.close()
})

test('two plugins with one tool are both left out, one with the name of a built-in tool too, and the log says so', async () => {
  using at = await stage()
  at.put('a', 'cat')
  at.put('b', 'cat')
  at.put('c', 'cat', '', 'shell')
  for (const name of ['a', 'b', 'c']) await at.approve(name)
  const runtime = await at.open()
  expect(runtime.all.filter(({ name }) => name === 'echo')).toEqual([])
  expect(runtime.all.filter(({ name }) => name === 'shell')).toHaveLength(1)
  expect(at.lines.join('')).toMatch(/plugins\/a\/run is not offered: it has the name "echo", and so has .*plugins\/b\/run/)
  expect(at.lines.join('')).toMatch(/plugins\/c\/run is not offered: .*a built-in tool/)
  await runtime.close()
})

test('a plugin with hosts counts as one that sends what it was told and reads what strangers wrote; others do not', async () => {
  using at = await stage()
  at.put('p', 'cat', '[permissions]\nhosts = ["example.org"]\n')
  at.put('q', 'cat', '', 'quiet')
  for (const name of ['p', 'q']) await at.approve(name)
  const runtime = await at.open()
  const { judge } = at.on(runtime)
  expect((await judge()).labels).toEqual(['reads_untrusted', 'sends'])
  expect((await judge({}, 'quiet')).labels).toBeUndefined()
  await runtime.close()
})

test('JSON in, JSON out: a text and an output are the result, an error fails the call, and anything else is said', async () => {
  using at = await stage('[security]\nautonomy = "full"\n')
  const tried = async (body: string) => {
    at.put('p', body)
    await at.approve('p')
    const runtime = await at.open()
    const { judge, act } = at.on(runtime)
    const { status, output, error } = await act(await judge({ text: 'hi' }), { text: 'hi' })
    await runtime.close()
    return [status, error ?? output]
  }
  expect(await tried('cat')).toEqual(['allowed', '{"text":"hi"}'])
  expect(await tried(`echo '"said"'`)).toEqual(['allowed', 'said'])
  expect(await tried(`echo '{"output":"said"}'`)).toEqual(['allowed', 'said'])
  expect(await tried(`echo '{"output":1}'`)).toEqual(['allowed', '{"output":1}'])
  expect(await tried(`echo '{"error":"no luck"}'`)).toEqual(['failed', 'no luck'])
  expect(await tried('echo done')).toEqual(['failed', 'it printed no JSON value but "done"'])
  expect(await tried('echo why >&2; exit 3')).toEqual(['failed', 'exit code 3: why'])
})

test('only declared variables arrive, and their values are redacted', async () => {
  using at = await stage('[security]\nautonomy = "full"\n')
  const dump = join(at.root, 'dump')
  at.put('p', `env >${dump}; printf '"%s"' "$API_KEY"`, '[permissions]\nvariables = ["API_KEY"]\n')
  await at.approve('p')
  const runtime = await at.open()
  const { judge, act } = at.on(runtime)
  const { output } = await act(await judge())
  expect(output).not.toContain('q9f8e7d6c5b4')
  expect(readFileSync(dump, 'utf8')).toContain('API_KEY=q9f8e7d6c5b4')
  at.put('p', `env >${dump}; echo 1`)
  await at.approve('p')
  await runtime.refresh()
  await act(await judge())
  expect(readFileSync(dump, 'utf8')).not.toContain('API_KEY')
  await runtime.close()
})
