/** The agent's side by command: `control worker`, `agent --control`, and `control verify` of what they delivered. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../support/needs.ts'
import { call, home, scripted } from '../../support/turns.ts'
import { type OwnControl, ownControl } from '../support/own-control.ts'

/** Its own runner works in the sandbox. */
const possible = needs('bwrap')

async function agentKey(control: OwnControl, name: string): Promise<string> {
  const file = join(control.at.dir, `${name}.key`)
  await control.out(['agent', 'add', name, '--key', '--to', file])
  return file
}

function script(control: OwnControl, body: string): string {
  const path = join(control.at.dir, 'runner.sh')
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o755)
  return path
}

const worker = (control: OwnControl, key: string, ...more: readonly string[]) =>
  control.run(['worker', '--agent', 'a', '--key-file', key, '--runner', 'command', '--once', ...more])

describe('control worker', () => {
  test('refuses to begin without a name, a key, or with a key that others can read; the key is never shown', async () => {
    await using control = await ownControl()
    const key = await agentKey(control, 'a')
    const told = async (words: readonly string[], env = {}) => {
      const { code, stderr } = await control.run(['worker', ...words], { env, timeoutMs: 60_000 })
      return `${code} ${stderr}`
    }
    expect(await told([])).toStartWith('1 error: no key for the agent: set CONTROLPLANE_API_KEY')
    expect(await told(['--agent', '../a'])).toStartWith('2 error: agent "../a": a name has')
    expect(await told(['--agent', 'a', '--role', 'x/y'])).toStartWith('2 error: role "x/y": a name has')
    const keyless = await told(['--agent', 'a', '--runner', 'command', '--', 'true'])
    expect(keyless).toMatch(/--key-file.*control key new a/)
    expect(await told(['--agent', 'a', '--key-file', key, '--readable', '/nope', '--', 'true'])).toStartWith('2 error: --readable /nope: ')
    expect(await told(['--agent', 'a', '--key-file', key, '--runner', 'own', '--', 'true'])).toStartWith(
      '2 error: "true": only --runner command',
    )
    expect(await told(['--agent', 'a', '--key-file', `${key}x`])).toContain('the file does not exist')
    expect(await told(['--agent', 'a', '--key-file', key, '--runner', 'comand'])).toContain('did you mean "command"?')
    expect(await told(['--agent', 'a', '--key-file', key, '--runner', 'command'])).toContain('--runner command -- PROGRAM')
    const wrong = await told(['--agent', 'a', '--once', '--', 'true'], { CONTROLPLANE_API_KEY: 'cpa_wrong-wrong-wrong-wrong-wrong' })
    expect(wrong).toMatch(/^3 .*error: the control plane at \S+ refuses the agent "a".*control key rotate a\n$/s)
    const misplaced = await told(['--agent', 'a', '--role', 'other', '--key-file', key, '--once', '--', 'true'])
    expect(misplaced).toMatch(/^3 .*error: the agent "a" has the role "a" .* --role names "other"; leave out --role/s)
    chmodSync(key, 0o644)
    const open = await told(['--agent', 'a', '--key-file', key])
    expect([open.includes('others can read this secret'), open.includes(readFileSync(key, 'utf8').trim())]).toEqual([true, false])
  }, 180_000)

  test('does one task with --once: exit 0 or 1 by how it ended; what it delivered is verified, and one altered byte is found', async () => {
    await using control = await ownControl()
    const { at } = control
    const key = await agentKey(control, 'a')
    mkdirSync(join(at.dir, 'work'))
    const there = ['-C', join(at.dir, 'work'), '--']
    await control.out(['task', 'add', 'Write', '--role', 'a'])
    const good = script(control, `cat > /dev/null; echo made > made.txt; echo '{"type":"result","ok":true,"output":"done"}'`)
    expect((await worker(control, key, ...there, good)).code).toBe(0)
    expect(await control.out(['run', 'show', '1'])).toContain('changes    waiting')
    expect((await control.json(['verify', 'RUN-001'])).ok).toBe(true)
    const folder = join(at.dir, 'saved')
    await control.out(['run', 'save', '1', '--to', folder])
    expect((await at.run(['control', 'verify', folder])).code).toBe(0)
    const foreign = await at.run(['control', 'verify', folder, '--key', '00'.repeat(32)])
    expect([foreign.code, foreign.stdout.includes('not with the pinned key')]).toEqual([9, true])
    const log = readFileSync(join(folder, 'run.log'), 'utf8')
    writeFileSync(join(folder, 'run.log'), log.replace('done', 'gone'))
    const altered = await at.run(['control', 'verify', folder])
    expect([altered.code, altered.stdout]).toEqual([9, expect.stringContaining('invalid: the log has the digest')])
    await control.out(['task', 'add', 'Fail', '--role', 'a', '--attempts', '2'])
    expect((await worker(control, key, ...there, script(control, 'exit 3'))).code).toBe(1)
    const { manifest } = await control.json(['run', 'show', '1'])
    const delivered = await fetch(`${control.url}/api/controlplane/runs/RUN-002/deliver`, {
      method: 'POST',
      body: JSON.stringify({ manifest }),
      headers: { authorization: `Bearer ${readFileSync(key, 'utf8').trim()}`, 'content-type': 'application/json' },
    })
    const other = await control.run(['verify', 'RUN-002'])
    expect([delivered.status, other.code, other.stdout]).toEqual([200, 9, expect.stringContaining('it is the manifest of RUN-001')])
  }, 180_000)
})

describe('agent --control', () => {
  test('takes its tasks from the control plane and nowhere else', async () => {
    await using control = await ownControl()
    for (const words of [['-m', 'hi'], ['-c'], ['--attempts', '2']]) {
      const { code, stderr } = await control.at.run(['agent', '--control', '--agent', 'a', ...words])
      expect([code, stderr.includes('--control takes its tasks from the control plane')]).toEqual([2, true])
    }
    expect((await control.at.run(['agent', '--role', 'a', '-m', 'hi'])).stderr).toContain('--role belongs to --control')
  }, 120_000)

  test.if(possible)(
    'works with our own runner and model, and ends well at SIGTERM',
    async () => {
      const at = home()
      const model = scripted(at, [call('file_write', { path: 'note.txt', content: 'hello\n' }), { text: 'The note is written.' }])
      await using control = await ownControl({}, at)
      const key = readFileSync(await agentKey(control, 'writer'), 'utf8').trim()
      const id = await control.out(['task', 'add', 'Write a note', '--role', 'writer'])
      const agent = at.start(['agent', '--control', '--agent', 'writer', '--autonomy', 'full', '-C', at.workspace], {
        env: { ...model.env, CONTROLPLANE_API_URL: control.url, CONTROLPLANE_API_KEY: key },
        timeoutMs: 90_000,
      })
      await agent.says(`${id}: `)
      process.kill(agent.pid, 'SIGTERM')
      const { code, stderr } = await agent.result
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`${id}: completed`) })
      expect(await control.json(['task', 'show', id])).toMatchObject({
        status: 'completed',
        result: { output: expect.stringContaining('The note is written.') },
      })
      expect(stderr).not.toContain(key)
    },
    120_000,
  )
})
