import { describe, expect, test } from 'bun:test'
import type { Stdin } from './lone-word.ts'
import { commands } from './parse-args.ts'
import { meaningOf } from './resolve-command.ts'

const meaning = (line: readonly string[], stdin: Stdin = 'nothing') => {
  const found = meaningOf(line, commands(), stdin)
  return found.kind === 'doubt' ? found.message : [found.kind, ...found.words]
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
    expect(meaning(['agnet'])).toContain('braidclaw -- agnet')
    expect(meaning(['-s', 'shout', 'sesion'])).toContain('braidclaw -s shout -- sesion')
    expect(meaning(['-s', 'it costs $5', 'sesion'])).toContain("braidclaw -s 'it costs $5' -- sesion")
    expect(meaning(['sesion', 'load', '`id` b'])).toContain("braidclaw -- sesion load '`id` b'")
  })
})

describe('a word that is a command of another program is not asked of a model', () => {
  test.each([
    [['login'], 'braidclaw onboard'],
    [['Login'], 'braidclaw onboard'],
    [['auth', 'login'], 'braidclaw onboard'],
    [['models'], 'braidclaw provider list'],
    [['models', 'list'], 'braidclaw provider list'],
    [['update'], 'git pull'],
    [['chat'], 'braidclaw agent'],
    [['history'], 'braidclaw memory list'],
    [['serve'], 'braidclaw daemon'],
    [['status'], 'braidclaw doctor'],
  ])('%j', (line, says) => {
    for (const stdin of ['terminal', 'nothing'] as const) {
      expect(meaning(line, stdin)).toStartWith(`error: no command "${line[0]}"; `)
      expect(meaning(line, stdin)).toContain(says)
      expect(meaning(line, stdin)).toContain(`To ask it all the same: braidclaw -- ${line.join(' ')}`)
    }
    expect(meaning(line, 'data')).toEqual(['filter', 'filter', ...line])
  })

  test('of a person at a terminal any single word; of a script, or beside data, none', () => {
    expect(meaning(['summarise'], 'terminal')).toBe(
      'error: no command "summarise"; all commands: braidclaw --help. To ask it all the same: braidclaw -- summarise\n',
    )
    expect(meaning(['summarise'], 'nothing')).toEqual(['filter', 'filter', 'summarise'])
    expect(meaning(['summarise'], 'data')).toEqual(['filter', 'filter', 'summarise'])
  })

  test.each([
    [['update', 'my', 'notes']],
    [['models', 'of', 'cars']],
    [['login?']],
    [['constructor']],
    [['-c', 'continue']],
    [['was', 'nun']],
  ])('%j is a question', (line) => {
    expect(meaning(line)).toEqual(['filter', 'filter', ...line])
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
  expect(meaning(line)).toEqual(['filter', 'filter', ...line])
})

test.each([
  [['agent'], ['agent']],
  [
    ['session', '5'],
    ['session', '5'],
  ],
  [['config'], ['config']],
  [
    ['tool', 'rnu'],
    ['tool', 'rnu'],
  ],
  [['--help'], ['--help']],
  [['version'], ['--version']],
  [
    ['help', 'memory'],
    ['memory', '--help'],
  ],
  [[], ['--help']],
])('%j is a command', (line, words) => {
  expect(meaning(line)).toEqual(['command', ...words])
})
