/** Other programs use the database while we run: nothing that was answered is lost, also when we are killed afterwards. */

import { test as always, expect } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { executable, type Nest } from '../support/cli.ts'
import { daemon, person } from '../support/daemon.ts'
import { pay, questionsIn, visits } from '../support/foreign-sqlite.ts'
import { needs } from '../support/needs.ts'
import { home, scripted } from '../support/turns.ts'

const test = always.if(needs('sqlite3', 'python3'))

/** Something of ours that stays and answers. */
type Session = {
  /** Resolves when the answer has come. */
  say(text: string): Promise<void>
  /** Whatever makes it open the database once more. */
  again(): Promise<void>
  kill(): Promise<unknown>
}

const stateIn = (at: Nest) => join(at.home, '.braidclaw')
const echo = (at: Nest) => scripted(at, [{ text: 'You said {{last_user_message}}.' }]).env

/** The conversation on a pseudo-terminal. */
async function terminal(at: Nest): Promise<Session> {
  const screen = { text: '', from: 0 }
  const child = Bun.spawn([executable, 'agent'], {
    cwd: at.workspace,
    env: { ...at.env, ...echo(at) },
    terminal: {
      cols: 200,
      data(_, bytes) {
        screen.text += new TextDecoder().decode(bytes)
      },
    },
  })
  const shows = async (text: string) => {
    while (!screen.text.includes(text, screen.from) && child.exitCode === null) await Bun.sleep(5)
    const found = screen.text.indexOf(text, screen.from)
    if (found < 0) throw new Error(`it never showed ${JSON.stringify(text)}: ${screen.text}`)
    screen.from = found + text.length
  }
  const type = async (line: string, shown: string) => {
    child.terminal?.write(`${line}\r`)
    await shows(shown)
    await shows('> ')
  }
  await shows('> ')
  return {
    say: (text) => type(text, `You said ${text}.`),
    async again() {
      await type('/clear', 'a new conversation begins')
      await type('/model mock/other', 'mock/other')
    },
    kill() {
      child.kill('SIGKILL')
      return child.exited
    },
  }
}

/** Two agents of the library in one process, by turns. */
async function library(at: Nest): Promise<Session> {
  const flags = ['--config=/dev/null', '--no-env-file']
  const child = Bun.spawn([process.execPath, ...flags, join(import.meta.dir, '../support/two-agents.ts'), stateIn(at), at.workspace], {
    env: { ...at.env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const answers = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  const state = { next: 'a' }
  const ask = async (agent: string, text: string) => {
    child.stdin.write(`${agent} ${text}\n`)
    child.stdin.flush()
    expect((await answers.read()).value).toBe('done\n')
  }
  return {
    async say(text) {
      await ask(state.next, text)
      state.next = state.next === 'a' ? 'b' : 'a'
    },
    again: async () => {},
    kill() {
      child.kill('SIGKILL')
      return child.exited
    },
  }
}

/** The daemon, through its FIFOs. */
async function pipes(at: Nest): Promise<Session> {
  const serving = await daemon(at, [], { env: echo(at) })
  const me = await person(serving.dir)
  return {
    say: async (text) => expect(await me.ask(text)).toBe(`You said ${text}.`),
    again: async () => {},
    async kill() {
      await serving.kill()
      await me[Symbol.asyncDispose]()
    },
  }
}

const sessions = [
  ['a conversation on a terminal, after /clear and /model', terminal],
  ['two agents in one process', library],
  ['the daemon', pipes],
] as const

test.each(sessions)('%s: no foreign program takes a turn away, ours or that of another process', async (_, open) => {
  using at = home()
  const database = join(stateIn(at), 'memory.sqlite')
  const said: string[] = []
  const session = await open(at)
  const say = async (text: string) => {
    await session.say(text)
    said.push(text)
  }
  await say('first')
  await say('second')
  await session.again()
  for (const visit of visits(database, mkdtempSync(join(at.dir, 'copies-')))) {
    await pay(visit)
    await say(`after ${visit.name}`)
    const other = `another process after ${visit.name}`
    expect(await at.run(['agent', '-m', other], { env: echo(at) })).toMatchObject({ code: 0 })
    said.push(other)
  }
  await session.kill()
  expect(questionsIn(database)).toEqual(said)
  expect(await at.run(['receipt', 'verify', '--deep'])).toMatchObject({ code: 0, stderr: '' })
})
