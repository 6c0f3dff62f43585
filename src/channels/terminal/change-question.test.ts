import { describe, expect, test } from 'bun:test'
import { readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { changeSetOf, folder, type Sides } from '../../host/changes/fixture.ts'
import type { ChangeSet, Revision } from '../../runtime/changes.ts'
import type { AskPerson } from './approval-prompt.ts'
import { askAboutChanges, readNumbers } from './change-question.ts'
import { wordsOf } from './printer.ts'

const two: Sides = { 'a.txt': ['one\n', 'two\n'], 'b.txt': [null, 'new\n'] }

type Script = {
  readonly sides?: Sides
  readonly stage?: ChangeSet['stage']
  readonly whole?: boolean
  readonly edit?: (files: readonly string[]) => number
}

/** Answers in order, then the end of input. Returns every text that was shown. */
async function asked(
  answers: readonly (string | undefined)[],
  { sides = two, stage = 'made', whole = false, edit = () => 0 }: Script = {},
) {
  const shown: string[] = []
  const left = [...answers]
  const ask: AskPerson = Object.assign(
    async (question: Parameters<AskPerson>[0]) => {
      shown.push(wordsOf(question))
      return left.shift()
    },
    { edit: async (files: readonly string[]) => edit(files) },
  )
  const revise = async () => ({ ok: true as const, part: 'p' })
  const set = { ...changeSetOf(sides, stage), ...(whole ? {} : { revise }) }
  const answer = await askAboutChanges({
    heading: 'shell · medium risk · why\n',
    details: '  plan: p\n',
    set,
    ask,
    color: false,
    signal: new AbortController().signal,
  })
  return { answer, shown }
}

describe('nothing but a clear yes applies anything', () => {
  test.each([[undefined], [''], ['n'], ['no'], ['N'], ['n use tabs']])('%p', async (typed) => {
    const { answer } = await asked([typed])
    expect(answer?.kind ?? 'no').toBe('no')
  })
  test('a key that means nothing explains the keys and asks again, but not for ever', async () => {
    const { answer, shown } = await asked(Array.from({ length: 20 }, () => 'whatever'))
    expect(answer).toBeUndefined()
    expect(shown).toHaveLength(8)
    expect(shown[1]).toContain('drop them; the model gets what you type after it')
  })
  test('pasted lines are no answer', async () => expect((await asked(['y\nrm', 'y'])).answer).toBeUndefined())
  test('going back from the choice, and an editor that fails or saves nothing, decide nothing', async () => {
    expect((await asked(['s', '', 'y'])).answer).toEqual({ kind: 'yes' })
    expect((await asked(['e', 'y'], { edit: () => 1 })).answer).toEqual({ kind: 'yes' })
    expect((await asked(['e', 'y'])).answer).toEqual({ kind: 'yes' })
  })
  test('choosing and then refusing refuses all', async () => expect((await asked(['s', '1', 'n'])).answer).toEqual({ kind: 'no' }))
})

test('a reason is passed on', async () => {
  expect((await asked(['n use tabs, please'])).answer).toEqual({ kind: 'no', note: 'use tabs, please' })
  expect((await asked(['no: too many files'])).answer).toEqual({ kind: 'no', note: 'too many files' })
  expect((await asked(['nothing'])).answer).toBeUndefined()
})

test('the question shows the difference, and d all of it', async () => {
  const long = Array.from({ length: 100 }, (_, at) => `line ${at}\n`).join('')
  const { shown } = await asked(['d', 'y'], { sides: { 'a.txt': ['one\n', 'two\n'], 'long.txt': [null, long] } })
  expect(shown[0]).toStartWith('\nchanged a.txt (+1 −1)\n@@ -1 +1 @@\n-one\n+two\nnew long.txt (+100 −0)\n')
  expect(shown[0]).toContain(
    '… 61 more lines not shown (+61 −0)\n2 paths: 1 new, 1 changed (+101 −1)\nshell · medium risk · why\nApply these changes? [y/N/s/e/d/a/?] ',
  )
  expect(shown[1]).toContain('+line 99\n')
})

describe('chosen files', () => {
  const paths = async (typed: string, sides: Sides) => (await asked(['s', typed, 'y'], { sides })).answer?.revision?.only
  test('only they are shown and applied, and the record says so', async () => {
    const { answer, shown } = await asked(['s', '2', 'y'])
    expect(answer).toEqual({ kind: 'yes', revision: { only: ['b.txt'] }, note: 'the person applied only b.txt and dropped the rest' })
    expect(shown[1]).toBe('   1  changed a.txt (+1 −1)\n   2  new b.txt (+1 −0)\nWhich to apply? Numbers such as 1,3-5; Enter goes back: ')
    expect(shown[2]).not.toContain('a.txt')
  })
  test('bring their new folders, and leave a folder that still holds something', async () => {
    expect(await paths('3', { d: [null, folder], 'd/a': [null, 'x'], 'd/b': [null, 'y'] })).toEqual(['d', 'd/b'])
    const gone: Sides = { d: [folder, null], 'd/a': ['x', null], 'd/b': ['y', null] }
    expect(await paths('1-2', gone)).toEqual(['d/a'])
    expect(await paths('1-3', gone)).toEqual(['d', 'd/a', 'd/b'])
  })
  test('a renamed file is one choice', async () =>
    expect(await paths('1', { old: ['same\n', null], new: [null, 'same\n'] })).toEqual(['old', 'new']))
  test('a git directory is chosen as a whole or not at all, in every spelling', async () => {
    const sides: Sides = { 'x/.git/config': [null, 'c'], 'a.txt': [null, 'a'], 'x/.git/HEAD': [null, 'h'], '.GIT/HEAD': [null, 'h'] }
    const { shown } = await asked(['s', '1', 'y'], { sides })
    expect(shown[1]).toContain('   1  git directory x/.git (2 paths, only as a whole)\n   2  new a.txt')
    expect(shown[1]).toContain('   3  git directory .GIT (1 path, only as a whole)\n')
    expect(await paths('1', sides)).toEqual(['x/.git/config', 'x/.git/HEAD'])
  })
  test('so is one outside the workspace, whatever its name', async () => {
    const sides: Sides = { 'a.txt': [null, 'a'], '/srv/x/config': [null, 'c'], '/srv/x/info/exclude': [null, 'h'] }
    const { shown } = await asked(['s', '2', 'y'], { sides })
    expect(shown[1]).toContain('git directory outside the workspace (2 paths, only as a whole)\n')
    expect((await paths('2', sides))?.length).toBe(2)
  })
  test('numbers that are not on the list are asked again', async () => {
    expect(readNumbers('0', 3)).toContain('not on the list')
    expect(readNumbers('2-4', 3)).toContain('not on the list')
    expect(readNumbers('3-2', 3)).toContain('not on the list')
    expect(readNumbers('1-999999999999', 3)).toContain('not on the list')
    expect(readNumbers('one', 3)).toContain('not on the list')
    expect(readNumbers(',', 3)).toBe('this is not a number')
    expect(readNumbers(' 1, 3-4 ', 4)).toEqual(new Set([1, 3, 4]))
  })
  test('are not offered where a yes is to the whole', async () => {
    const { shown } = await asked(['s', 'e', 'y'], { whole: true })
    expect(shown[0]).toEndWith('Apply these changes? [y/N/d/a/?] ')
    expect(shown[1]).not.toContain('choose')
  })
})

test('what the person saved in the editor is shown again, applied, and named as theirs', async () => {
  const seen: string[] = []
  const edit = (files: readonly string[]) => {
    const [first = '', second = ''] = files
    seen.push(readFileSync(first, 'utf8'), readFileSync(second, 'utf8'), first.slice(first.lastIndexOf('/') + 1))
    writeFileSync(first, 'three\n')
    unlinkSync(second)
    return 0
  }
  const { answer, shown } = await asked(['e', 'y'], { edit })
  expect(seen).toEqual(['two\n', 'new\n', 'a.txt'])
  expect(shown[1]).toStartWith('changed a.txt (+1 −1)\n@@ -1 +1 @@\n-one\n+three\n')
  const revision: Revision = { only: ['a.txt', 'b.txt'], edited: new Map([['a.txt', new TextEncoder().encode('three\n')]]) }
  expect(answer).toEqual({ kind: 'yes', revision, note: 'the person applied the changes, and edited a.txt first' })
})

test('a call that has not run yet is approved with the usual keys', async () => {
  const { shown } = await asked(['?', 'a'], { stage: 'proposed', whole: true })
  expect(shown[0]).toEndWith('2 paths: 1 new, 1 changed (+2 −1)\nshell · medium risk · why\nApprove? [y/N/a] ')
  expect(shown[1]).toStartWith('  plan: p\n')
  expect(shown[1]).toContain('allow this call once')
  expect((await asked(['maybe', 'y'], { stage: 'proposed', whole: true })).answer).toEqual({ kind: 'no' })
})
