import { describe, expect, test } from 'bun:test'
import { variablesOf } from './layers/environment.ts'
import { configOf, problemsOf } from './load.fixture.ts'
import { tableOf } from './table.ts'

describe('the lengths of a history', () => {
  test.each<[string, { readonly [name: string]: string }, string]>([
    [
      'rubbish',
      { HISTORY_MAX: 'many' },
      'HISTORY_MAX memory.history_max: must be a whole number from 3 to 1000000 (messages), found the text "many"',
    ],
    ['nothing kept', { HISTORY_KEEP: '0' }, 'HISTORY_KEEP memory.history_keep: 0 is out of range; must be from 2 to 1000000 (messages)'],
    ['less than nothing', { HISTORY_MAX: '-1' }, '-1 is out of range'],
    ['a part of a message', { HISTORY_MAX: '4.5' }, 'must be a whole number'],
    [
      'as much kept as is too much',
      { HISTORY_MAX: '50', HISTORY_KEEP: '50' },
      'HISTORY_KEEP memory.history_keep: 50 must be less than memory.history_max (50)',
    ],
    [
      'more kept than is too much',
      { HISTORY_KEEP: '300' },
      'HISTORY_KEEP memory.history_keep: 300 must be less than memory.history_max (200)',
    ],
    ['too little for what is kept', { HISTORY_MAX: '30' }, 'HISTORY_MAX memory.history_max: 30 must be more than memory.history_keep (40)'],
  ])('are refused, with the name of the variable: %s', (_, env, message) => {
    const problems = problemsOf({ env })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(message)
  })

  test('in a file are refused with their line', () => {
    expect(problemsOf({ user: '[memory]\nhistory_max = 10\nhistory_keep = 10' })).toEqual([
      '3:16 memory.history_keep: 10 must be less than memory.history_max (10)',
    ])
  })

  test('are not for a project to set, nor is the folder', () => {
    for (const line of ['history_max = 4', 'history_keep = 2', 'agent_dir = "/tmp/x"'])
      expect(problemsOf({ project: `[memory]\n${line}` })[0]).toContain('a project may not set this')
  })

  test('come from the names of the original too', () => {
    const env = { HISTORY_MAX: '60', HISTORY_KEEP: '50', PLANCKCLAW_DIR: './memory' }
    expect(configOf({ env }).memory).toMatchObject({ historyMax: 60, historyKeep: 50, agentDir: '/work/memory' })
    expect(configOf({}).memory).toMatchObject({ historyMax: 200, historyKeep: 40 })
    expect(configOf({}).memory.agentDir).toBeUndefined()
  })
})

test('of the environment only what may be a setting is looked at', () => {
  const table = tableOf([])
  const short = table.settings.flatMap(({ env }) => (env === undefined ? [] : [env]))
  const others = ['HISTORY_MAX_X', 'XHISTORY_MAX', 'HOME', 'PATH', 'BRAIDCLAW_']
  const env = Object.fromEntries([...short, 'BRAIDCLAW_X', 'SHELLCLAW_X', ...others].map((name) => [name, '1']))
  expect([...variablesOf(env, table).keys()]).toEqual([...short, 'BRAIDCLAW_X', 'SHELLCLAW_X'])
})
