/** Handles a single word that is no command: it is most likely a command of another program, so it is not sent as a paid question. */

import { pasteable } from './shell-quote.ts'

/** What stdin is; when it carries data, a word is an instruction for that data. */
export type Stdin = 'terminal' | 'data' | 'nothing'

const connect = 'to connect a model: braidclaw onboard'
const talk = 'for a conversation: braidclaw agent'
const earlier = 'earlier conversations: braidclaw memory list; to go on with the latest: braidclaw agent -c'
const models = 'who can be asked: braidclaw provider list; to choose: -m PROVIDER/MODEL'
const update = 'to update, run "git pull && npm ci" in the folder it was installed from'

/** Words that are commands in other programs, with the equivalent here. */
const instead: { readonly [word: string]: string } = {
  ...{ login: connect, logout: connect, auth: connect, signin: connect, setup: connect, configure: connect, key: connect, keys: connect },
  ...{ models, model: models, providers: models },
  ...{ update, upgrade: update, install: update },
  ...{ chat: talk, repl: talk, start: talk, ask: talk, exec: talk, prompt: talk },
  ...{ history: earlier, sessions: earlier, resume: earlier, continue: earlier, conversations: earlier },
  gateway: 'to answer over HTTP: braidclaw serve',
  ...{ status: 'to check everything: braidclaw doctor', info: 'to check everything: braidclaw doctor' },
  ...{ stop: 'to stop every tool: braidclaw estop', kill: 'to stop every tool: braidclaw estop' },
  ...{ settings: 'the settings: braidclaw config show', preferences: 'the settings: braidclaw config show' },
  commands: 'all commands: braidclaw --help',
}

const subcommands = ['list', 'login', 'logout', 'add', 'remove', 'show', 'status', 'set', 'get', 'test', 'now']

/** Returns the equivalent of another program's command, with or without a sub-command. */
export function misplacedFlags(words: readonly string[], stdin: Stdin): string | undefined {
  const [word = '', second, ...more] = words
  if (stdin === 'data' || more.length > 0 || (second !== undefined && !subcommands.includes(second))) return undefined
  const known = Object.hasOwn(instead, word.toLowerCase()) ? instead[word.toLowerCase()] : undefined
  return known === undefined ? undefined : sentence(words, known)
}

/** A single word typed at a terminal most likely means a command; a script may ask a model one word. */
export function unknownWord(words: readonly string[], stdin: Stdin): string | undefined {
  return stdin === 'terminal' && words.length === 1 ? sentence(words, 'all commands: braidclaw --help') : undefined
}

function sentence(words: readonly string[], what: string): string {
  return `no command "${words[0]}"; ${what}. To ask it all the same: braidclaw -- ${pasteable(words)}`
}
