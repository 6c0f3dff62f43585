import { describe, expect, test } from 'bun:test'
import { toolKinds } from '../tools/list.ts'
import { readSop } from './sop-file.ts'
import { sopProgram } from './sop-program.ts'
import { verifySop } from './verify-sop.ts'

const tools = new Map(toolKinds.map((kind) => [kind.name, kind]))
const approval = (id: string, more = '') => `[[steps]]\nid = "${id}"\nkind = "approval"\nprompt = "?"\n${more}\n`
const write = (id: string, more = '') =>
  `[[steps]]\nid = "${id}"\nkind = "tool"\ntool = "file_write"\nargs = { path = "x", content = "y" }\n${more}\n`
const read = (id: string, more = '') => `[[steps]]\nid = "${id}"\nkind = "tool"\ntool = "file_list"\nargs = {}\n${more}\n`

const stepsOf = async (text: string) => {
  const { sop, problems } = await readSop({ text: `name = "x"\n${text}`, tools })
  expect(problems).toEqual([])
  return sop.steps
}
const verdict = async (text: string) => verifySop(await stepsOf(text), tools)

describe('a planted bypass is found', () => {
  test.each<[string, string, readonly string[]]>([
    [
      'an approval whose no is ignored',
      `${approval('ok', 'on_failure = "continue"')}${write('w')}`,
      ['ok begins', 'ok failed', 'w begins', 'w done'],
    ],
    [
      'an approval that may be skipped',
      `${read('r')}${approval('ok', 'when = { step = "r", contains = "x" }')}${write('w')}`,
      ['r begins', 'r done', 'ok begins', 'ok skipped', 'w begins', 'w done'],
    ],
    [
      'a write beside the approval',
      `${approval('ok', 'parallel = "p"')}${write('w', 'parallel = "p"')}`,
      ['ok begins', 'w begins', 'w done'],
    ],
  ])('%s', async (_, text, story) => {
    expect(await verdict(text)).toMatchObject({ outcome: 'broken', property: expect.stringContaining('approvals before what asks'), story })
  })
})

test('a command and a post ask, a page that is read does not', async () => {
  const after = (tool: string, args: string) =>
    `${approval('ok', 'on_failure = "continue"')}[[steps]]\nid = "s"\nkind = "tool"\ntool = "${tool}"\nargs = ${args}\n`
  const outcomes = [
    after('shell', '{ command = "make" }'),
    after('http', '{ url = "https://a.example", method = "POST" }'),
    after('http', '{ url = "https://a.example" }'),
  ]
  expect((await Promise.all(outcomes.map(verdict))).map(({ outcome }) => outcome)).toEqual(['broken', 'broken', 'holds'])
})

describe('a planted fault of the program is found', () => {
  const text = `${approval('ok')}${read('a')}${write('b')}`
  const without = async (name: string) => {
    const steps = await stepsOf(text)
    return verifySop(
      steps,
      tools,
      sopProgram(steps).filter((thread) => thread.name !== name),
    )
  }

  test('a step without its thread is a dead end', async () => {
    expect(await without('step a')).toMatchObject({ outcome: 'broken', property: expect.stringContaining('no dead end') })
  })
  test('a run without its last thread never ends', async () => {
    expect(await without('finish')).toMatchObject({ outcome: 'broken', property: expect.stringContaining('no dead end') })
  })
  test('without the thread that stops, steps run after a failure', async () => {
    expect(await without('stop')).toMatchObject({ outcome: 'broken', property: expect.stringContaining('no step begins') })
  })
})

test('a step that no run reaches is named', async () => {
  // A failure of a ends the run, so b is never skipped.
  const text = `${read('a')}${read('b', 'when = { step = "a", state = "failed", not = true }')}${read('c', 'when = { step = "b", state = "skipped" }')}`
  expect(await verdict(text)).toMatchObject({ outcome: 'unreached', steps: ['c'] })
})

test('what is in order holds: the same condition goes the same way, and a write after a yes is fine', async () => {
  expect(await verdict(`${read('l')}${approval('ok')}${write('w')}`)).toMatchObject({ outcome: 'holds' })
  const same = 'when = { step = "l", contains = "x" }'
  expect(await verdict(`${read('l')}${approval('ok', same)}${write('w', same)}`)).toMatchObject({ outcome: 'holds' })
})

test('three hundred steps are explored', async () => {
  const text = Array.from({ length: 300 }, (_, at) => read(`s${at}`, 'on_failure = "continue"')).join('')
  expect(await verdict(text)).toMatchObject({ outcome: 'holds' })
})
