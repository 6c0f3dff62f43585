/** The files of an agent beside other programs: what dash, jq and printf write into them, what kill -9 leaves of them, what rebuild makes of them. */

import { expect, test } from 'bun:test'
import { cpSync, existsSync, lstatSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentFile, session } from '../support/agent-files.ts'
import { type Nest, nest } from '../support/cli.ts'
import { daemon, historyOf, person, stopping } from '../support/daemon.ts'
import { needs } from '../support/needs.ts'
import { shell, stub } from '../support/shell.ts'
import { scripted } from '../support/turns.ts'

const files = ['agent.jsonl', 'sessions/current.jsonl'] as const
const contents = (at: Nest) => files.map((file) => readFileSync(agentFile(at, file), 'utf8'))
const agrees = async (at: Nest) => (await at.run(['rebuild', '--check'])).stdout

test.if(needs('dash', 'jq'))(
  'dash, printf and jq write into a session: found by search, told by memory show, and the check agrees',
  async () => {
    using at = nest()
    await at.run(['first question'], { env: stub })
    const script = `cd ~/.braidclaw/agents/default
    echo '{"ts":"2026-01-01T00:00:00Z","role":"user","content":"from dash: quokka"}' >> sessions/current.jsonl
    jq -nc '{ts: "2026-01-01T00:00:00Z", role: "assistant", content: "from jq: wombat\\nand more"}' >> sessions/current.jsonl
    printf 'no JSON at all: numbat' >> sessions/current.jsonl
    printf '{"ts":"2026-01-01T00:00:00Z","agent":"default","event":"deploy","message":"by a script"}\\n' >> agent.jsonl`
    expect((await shell(at, `dash -c '${script.replaceAll("'", `'"'"'`)}'`)).code).toBe(0)
    expect(await agrees(at)).toContain('the next turn takes in 4 lines of other programs')
    await at.run(['second question'], { env: stub })
    for (const word of ['quokka', 'wombat', 'numbat']) expect((await at.run(['memory', 'search', word])).stdout).toContain(word)
    const shown = (await at.run(['memory', 'show', 'last'])).stdout
    expect(shown.indexOf('quokka')).toBeGreaterThan(-1)
    expect(shown.indexOf('quokka')).toBeLessThan(shown.indexOf('second question'))
    expect((await at.run(['memory', 'list'])).stdout).toContain('second question')
    expect(await agrees(at)).toContain('files of agents agree with the journal\n')
    expect((await at.run(['replay', '--all'])).code).toBe(0)

    const before = contents(at)
    rmSync(agentFile(at, ''), { recursive: true })
    const gone = await at.run(['rebuild', '--check'])
    expect([gone.code, gone.stdout]).toEqual([9, expect.stringContaining('differs: ')])
    expect((await at.run(['rebuild'])).code).toBe(0)
    expect(contents(at)).toEqual(before)
    const next = await at.run(['-c', 'and then?'], { env: stub })
    expect([next.code, next.stderr]).toEqual([0, ''])
  },
)

test('kill -9 at any moment: after one whole turn each committed line stands once', async () => {
  using at = nest()
  for (let after = 0; after < 12; after += 1) {
    const turn = at.start([`question ${after}`], { env: stub })
    await Bun.sleep(40 + after * 9)
    try {
      process.kill(turn.pid, 'SIGKILL')
    } catch {
      // It had ended.
    }
    await turn.result
  }
  expect((await at.run(['the last'], { env: stub, timeoutMs: 20_000 })).code).toBe(0)
  expect((await at.run(['and again'], { env: stub })).code).toBe(0)
  expect(await agrees(at)).toMatch(/\d files of agents agree with the journal\n/)
  const said = session(at).filter((line) => line.startsWith('user'))
  expect(new Set(said).size).toBe(said.length)
  expect(said).toContain('user: the last')
  const asked: { content: string; role: string }[] = (await at.run(['memory', 'export'])).stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const questions = asked.filter(({ role }) => role === 'user').map(({ content }) => `user: ${content}`)
  expect(said.toSorted()).toEqual(questions.toSorted())
}, 120_000)

test('eight at once leave one file in which nothing is missing and nothing stands twice', async () => {
  using at = nest()
  const { code } = await shell(at, 'for n in 1 2 3 4 5 6 7 8; do braidclaw "question $n" >/dev/null & done; wait')
  expect(code).toBe(0)
  await at.run(['the last'], { env: stub })
  const asked = session(at).filter((line) => line.startsWith('user'))
  expect(asked.toSorted()).toEqual([...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `user: question ${n}`), 'user: the last'].toSorted())
  expect(await agrees(at)).toContain('files of agents agree with the journal\n')
}, 120_000)

test('a link in the place of the session is refused, and what it leads to stays as it was', async () => {
  using at = nest()
  await at.run(['one'], { env: stub })
  const outside = at.file('outside.txt', 'mine\n')
  rmSync(agentFile(at, 'sessions/current.jsonl'))
  symlinkSync(outside, agentFile(at, 'sessions/current.jsonl'))
  const { code, stdout, stderr } = await at.run(['two'], { env: stub })
  expect([code, stdout]).toEqual([0, 'stub response 2\n'])
  expect(stderr).toContain('the files of the agent cannot be written')
  expect([readFileSync(outside, 'utf8'), lstatSync(agentFile(at, 'sessions/current.jsonl')).isSymbolicLink()]).toEqual(['mine\n', true])
})

test('what a bridge of the original wrote into the history is gone on with, found by search, and rebuilt', async () => {
  using at = nest()
  const replies = scripted(at, [{ text: 'one' }])
  const first = await daemon(at, [], replies)
  await using me = await person(first.dir)
  expect(await me.ask('First')).toBe('one')
  await first.stop()
  const line = (role: string, content: string) =>
    `printf '%s\\n' '{"role":"${role}","content":"${content}"}' >> ~/.braidclaw/agents/default/history.jsonl`
  await shell(at, `${line('user', 'Ask of a capybara')}; ${line('assistant', 'It swims.')}`)
  await using again = stopping(await daemon(at, [], replies))
  expect(await me.ask('Second')).toBe('one')
  expect(historyOf(at)).toEqual(['First', 'one', 'Ask of a capybara', 'It swims.', 'Second', 'one'])
  expect((await at.run(['memory', 'search', 'capybara'])).stdout).toContain('capybara')
  await again.stop()
  const history = readFileSync(agentFile(at, 'history.jsonl'), 'utf8')
  rmSync(agentFile(at, 'history.jsonl'))
  expect((await at.run(['rebuild'])).code).toBe(0)
  expect(readFileSync(agentFile(at, 'history.jsonl'), 'utf8')).toBe(history)
})

test('a session that was reset stays put aside through a rebuild', async () => {
  using at = nest()
  await at.run(['one'], { env: stub })
  await at.run(['reset'])
  expect((await at.run(['rebuild'])).code).toBe(0)
  expect(existsSync(agentFile(at, 'sessions/current.jsonl'))).toBe(false)
  expect((await at.run(['-c', 'two'], { env: stub })).stderr).toContain('a new conversation begins')
})

test('a home can be moved: its files still agree', async () => {
  using at = nest()
  await at.run(['one'], { env: stub })
  const there = join(at.dir, 'there')
  cpSync(join(at.home, '.braidclaw'), there, { recursive: true })
  const env = { ...stub, BRAIDCLAW_HOME: there }
  expect((await at.run(['rebuild', '--check'], { env })).code).toBe(0)
  writeFileSync(join(there, 'agents/default/agent.jsonl'), '')
  expect((await at.run(['rebuild', '--check'], { env })).code).toBe(9)
  expect((await at.run(['rebuild', '--check'])).code).toBe(0)
})
