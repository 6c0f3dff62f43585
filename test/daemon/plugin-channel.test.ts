/** A daemon whose people and whose model are two plugins, through the real executable in the real sandbox. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { server, writePlugin } from '../../src/host/toolset/guests/plugins/plugin.fixture.ts'
import { daemon, stopping } from '../support/daemon.ts'
import { needs } from '../support/needs.ts'
import { home } from '../support/turns.ts'
import { until } from '../support/until.ts'

/** Calls file_write when it is asked to write, and repeats anything else. */
const brain = `if method == "chat":
    last = params["messages"][-1]
    content, calls = "you said: " + str(last["content"]), None
    if last["role"] == "tool": content = "written \\x1b[2J"
    elif last["content"].startswith("write"):
        content, calls = None, [{"id": "c1", "type": "function", "function": {"name": "file_write", "arguments": json.dumps({"path": "a.txt", "content": "x"})}}]
    message = {"content": content, **({"tool_calls": calls} if calls else {})}
    answer({"choices": [{"message": message, "finish_reason": "tool_calls" if calls else "stop"}]})`

/** Two people write; who is listed says yes to what is asked, and at the end repeats all that was sent. */
const line = `if method == "hello":
    got = []
    message(address="room", person="eve", text="write it")
    message(address="room", person="ada", text="hello")
if method == "send":
    answer({})
    text = params["text"]
    got.append(text)
    if text == "you said: hello": message(address="room", person="ada", text="write it")
    if "Reply" in text: 
        code = text.split('"yes ')[1].split('"')[0]
        message(address="room", person="eve", text="yes " + code)
        message(address="room", person="ada", text="yes " + code)
    if text.startswith("written"): message(address="room", person="ada", text=json.dumps(got))`

test.if(needs('bwrap', 'python3'))(
  'a person who is listed is answered and may approve, a stranger may not, and nothing is left behind',
  async () => {
    using at = home(`[providers.models.own]
kind = "plugin"
plugin = "brain"
[channels.plugins]
enabled = true
names = ["line"]
users = ["line/ada", "other/eve"]
approvers = ["line/ada"]
profile = "operator"
`)
    const config = join(at.home, '.braidclaw/config.toml')
    at.config(
      readFileSync(config, 'utf8')
        .replace(/default_provider = .*\n/, '')
        .replace(/default_model = .*\n/, ''),
    )
    for (const [name, capability, program] of [
      ['brain', 'provider', brain],
      ['line', 'channel', line],
    ] as const) {
      const folder = writePlugin(join(at.dir, name), name, capability, server(program))
      const { stdout, code } = await at.run(['plugin', 'install', folder, '--yes'])
      expect([code, stdout]).toEqual([
        0,
        expect.stringContaining(capability === 'channel' ? 'it says who wrote what' : 'it sees every prompt'),
      ])
    }
    const env = { BRAIDCLAW_PROVIDER: 'own' }
    await using agent = stopping(await daemon(at, [], { env, timeoutMs: 60_000 }))
    await agent.says('person refused')
    await until(() => existsSync(join(at.workspace, 'a.txt')))
    const told = async (): Promise<string> => {
      const { stdout } = await at.run(['memory', 'search', 'Sorry', '--json'])
      return stdout.includes('your id: line/eve') && stdout.includes('you said: hello') ? stdout : told()
    }
    expect(await told()).not.toContain('\u001b')
    const { stdout } = await at.run(['approvals', 'list', '--all', '--json'])
    expect(JSON.parse(stdout)).toMatchObject([{ state: 'used', decidedBy: 'plugins line/ada' }])
    const { stderr } = await agent.stop()
    expect(stderr).not.toContain('\u001b')
    // The kernel ends the sandbox with the daemon, a moment later.
    await until(async () => (await new Response(Bun.spawn(['pgrep', '-f', at.dir]).stdout).text()) === '')
  },
  120_000,
)

test.if(needs('bwrap', 'python3'))(
  'a turn with it ends as any other: its text is shown without escapes, a budget holds, and the process is gone',
  async () => {
    using at = home('[providers.models.own]\nkind = "plugin"\nplugin = "brain"\nprice_input = 1000\nprice_output = 1000\n')
    const folder = writePlugin(join(at.dir, 'brain'), 'brain', 'provider', server(brain))
    expect((await at.run(['agent', '-m', 'hi', '--model', 'own/x'])).stderr).toContain('no plugin "brain"')
    await at.run(['plugin', 'install', folder, '--yes'])
    const { code, stdout } = await at.terminal(['agent', '-m', '\u001b[2J hi', '--model', 'own/x'], [])
    expect([code, stdout]).toEqual([0, expect.stringContaining('you said: ')])
    expect(stdout).not.toContain('\u001b[2J')
    const probed = await at.run(['provider', 'test', 'own'])
    expect([probed.code, probed.stdout]).toEqual([0, expect.stringContaining('ok')])
    const dear = await at.run(['agent', '-m', 'hi', '--model', 'own/x'], { env: { BRAIDCLAW_LIMITS_MAX_RUN_USD: '0.0001' } })
    expect([dear.code, dear.stdout]).toEqual([6, ''])
    // The kernel ends the sandbox with the daemon, a moment later.
    await until(async () => (await new Response(Bun.spawn(['pgrep', '-f', at.dir]).stdout).text()) === '')
  },
  60_000,
)
