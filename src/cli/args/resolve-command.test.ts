import { describe, expect, test } from 'bun:test'
import { commands } from '../commands/list.ts'
import { filterFlags } from './filter-flags.ts'
import { neighbours } from './help.ts'
import type { Stdin } from './resolve-command.ts'
import { mayBeForeign, pasteable, resolveCommand } from './resolve-command.ts'

/** Returns the message of an ambiguous line; otherwise the kind, the command, and its words. */
const meaning = (line: readonly string[], stdin: Stdin = 'nothing') => {
  const found = resolveCommand(commands, filterFlags, line, { stdin, ...(mayBeForeign(commands, filterFlags, line) ? { neighbours } : {}) })
  if (found.kind === 'doubt') return found.message
  if (found.kind === 'version') return ['version']
  return found.kind === 'help' ? ['help', found.row?.name ?? (found.all ? 'all' : '')] : [found.row.name, ...found.words]
}

describe('in doubt nothing is asked of a model', () => {
  test.each([
    [['agnet'], 'did you mean "agent"?'],
    [['agnet', '-m', 'some/model'], 'did you mean "agent"?'],
    [['hlep'], 'did you mean "help"?'],
    [['memroy', 'list'], 'did you mean "memory"?'],
    [['conf'], 'did you mean "config"?'],
    [['Agent'], 'did you mean "agent"?'],
    [['--verison'], 'did you mean "--version"?'],
    [['config', 'shwo'], '"config" has no command "shwo"; did you mean "show"?'],
    [['session', 'apend', 'user', 'x'], 'did you mean "append"?'],
    [['session', 'xyz'], '"session" has no command "xyz". See:'],
    [['--agent', 'coder', 'session'], 'braidclaw session --agent coder'],
    [['-s', 'shout', 'sesion'], 'did you mean the command "session"?'],
  ])('%j', (line, says) => {
    expect(meaning(line)).toContain(says)
    expect(meaning(line)).toStartWith('error: ')
  })

  test('it says how to ask it all the same', () => {
    expect(meaning(['agnet'])).toContain('braidclaw agent -m agnet')
    expect(meaning(['-s', 'shout', 'sesion'])).toContain('braidclaw -s shout -- sesion')
    expect(meaning(['-s', 'it costs $5', 'sesion'])).toContain("braidclaw -s 'it costs $5' -- sesion")
    expect(meaning(['sesion', 'load', '`id` b'])).toContain("braidclaw agent -m 'sesion load `id` b'")
  })
})

describe('a word that is a command of another program is not asked of a model', () => {
  test.each([
    [['auth', 'login'], 'braidclaw onboard'],
    [['models'], 'braidclaw provider list'],
    [['models', 'list'], 'braidclaw provider list'],
    [['upgrade'], 'braidclaw update'],
    [['chat'], 'braidclaw agent'],
    [['history'], 'braidclaw memory list'],
    [['gateway'], 'braidclaw serve'],
    [['status'], 'braidclaw doctor'],
  ])('%j', (line, says) => {
    for (const stdin of ['terminal', 'nothing'] as const) {
      expect(meaning(line, stdin)).toStartWith(`error: no command "${line[0]}"; `)
      expect(meaning(line, stdin)).toContain(says)
      expect(meaning(line, stdin)).toContain(`To ask it as a question: braidclaw agent -m ${pasteable([line.join(' ')])}`)
    }
    if (line.length === 1) expect(meaning(line, 'data')).toEqual(['filter', ...line])
    else expect(meaning(line, 'data')).toBe(meaning(line))
  })

  test.each([
    ...['skills list', 'wiggum run', 'acp', 'eval 1+1'],
    ...['exec hello', 'plan', 'plan my weekend', 'sessions', 'fork last', 'agents', 'agents list', 'import a.json'],
    ...['review', 'review main', 'apply x.diff', 'plugins list', 'skils list'],
    'extensions install https://example.org/x.git',
  ])('%s, which is a command of other programs and none of ours', (text) => {
    const line = text.split(' ')
    for (const stdin of ['terminal', 'nothing'] as const) {
      expect(meaning(line, stdin)).toMatch(/^error: no command ".*"[;] .*To ask it as a question: braidclaw agent -m /)
    }
  })

  test('one argument with spaces is a message, and beside data a word is an instruction', () => {
    for (const line of [['plugin install x'], ['mcp list'], ['plan my weekend'], ['sop ']])
      for (const stdin of ['terminal', 'nothing', 'data'] as const) expect(meaning(line, stdin)).toEqual(['filter', ...line])
    for (const line of [['review'], ['plan'], ['exec', 'hello'], ['apply', 'this']])
      expect(meaning(line, 'data')).toEqual(['filter', ...line])
    expect(meaning(['--', 'plugin', 'install', 'x'])).toEqual(['filter', '--', 'plugin', 'install', 'x'])
    expect(meaning(['acp', 'list', 'x'], 'data')).toContain('no command "acp"')
    expect(meaning(['plugin', 'install', 'x'], 'data')).toEqual(['plugin install', 'x'])
  })

  test('no command of ours is in the list of the others, and each of theirs says what to do here', () => {
    const theirs = Object.entries({ ...neighbours.everydayCommands, ...neighbours.strangeCommands })
    expect(theirs.filter(([word]) => commands.some(({ name, load }) => name === word && load !== undefined))).toEqual([])
    expect(theirs.filter(([word, says]) => word !== word.toLowerCase() || says === '')).toEqual([])
  })

  test('of a person at a terminal any single word; of a script, or beside data, none', () => {
    expect(meaning(['summarise'], 'terminal')).toBe(
      'error: no command "summarise"; all commands: braidclaw help all. To ask it as a question: braidclaw agent -m summarise\n',
    )
    expect(meaning(['summarise'], 'nothing')).toEqual(['filter', 'summarise'])
    expect(meaning(['summarise'], 'data')).toEqual(['filter', 'summarise'])
  })

  test.each([
    [['upgrade', 'my', 'notes']],
    [['models', 'of', 'cars']],
    [['login?']],
    [['constructor']],
    [['-c', 'continue']],
    [['was', 'nun']],
  ])('%j is a question', (line) => {
    expect(meaning(line)).toEqual(['filter', ...line])
  })
})

test.each([
  [['what time is it']],
  [['what', 'time', 'is', 'it']],
  [['hello']],
  [['agnet', 'what', 'is', 'this']],
  [['tools', 'for', 'gardening']],
  [['sesion', 'please']],
  [['hi']],
  [['agent?']],
  [['--', 'agent']],
  [['-c', 'and then?']],
  [['-s', 'agent', 'what is it']],
  [['-s', 'x', '--', 'session']],
  [['--max-turns', '3', 'go on']],
  [['-m', 'x']],
])('%j is a question', (line) => {
  expect(meaning(line)).toEqual(['filter', ...line])
})

test.each([
  [['agent'], ['agent']],
  [
    ['session', '5'],
    ['session load', '5'],
  ],
  [
    ['session', '--json'],
    ['session load', '--json'],
  ],
  [['config'], ['config show']],
  [['tool', 'rnu'], 'error: "tool" has no command "rnu"; did you mean "run"? See: braidclaw tool --help\n'],
  [
    ['approvals', 'rules', 'lst'],
    'error: "approvals rules" has no command "lst"; did you mean "list"? See: braidclaw approvals rules --help\n',
  ],
  [['memory', '--json'], 'error: no flag "--json" before a command of "memory"\nSee: braidclaw memory --help\n'],
  [['memory list'], ['filter', 'memory list']],
  [['--help'], ['help', '']],
  [['--help-all'], ['help', 'all']],
  [
    ['help', 'all'],
    ['help', 'all'],
  ],
  [['help', 'al'], 'error: no command "al"; did you mean "all"?\nSee: braidclaw --help\n'],
  [['memory'], ['help', 'memory']],
  [
    ['agent', '-m', '--help'],
    ['help', 'agent'],
  ],
  [
    ['agent', '--', '--help'],
    ['agent', '--', '--help'],
  ],
  [['version'], ['version']],
  [['-v', 'x'], ['version']],
  [
    ['help', 'memory'],
    ['help', 'memory'],
  ],
  [
    ['help', 'approvals', 'rules', 'revoke'],
    ['help', 'approvals rules revoke'],
  ],
  [['help', 'sesion'], 'error: no command "sesion"; did you mean "session"?\nSee: braidclaw --help\n'],
  [['help', 'memory', 'nope'], 'error: "memory" has no command "nope". See: braidclaw memory --help\n'],
  [[], ['filter']],
])('%j', (line, words) => {
  expect<unknown>(meaning(line)).toEqual(words)
})

test('no words but data on stdin are a question', () => {
  expect(meaning([], 'data')).toEqual(['filter'])
  expect(meaning([], 'terminal')).toEqual(['help', ''])
})
