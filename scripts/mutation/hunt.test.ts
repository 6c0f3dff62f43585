import { expect, test } from 'bun:test'
import { hunt } from './hunt.ts'
import type { Mutant } from './instrument.ts'
import { reportOf, table } from './score.ts'
import type { Ending, Reach } from './trial.ts'

const mutant = (id: string, file = 'src/a.ts'): Mutant => ({ id, file, line: 1, column: 1, mutator: 'M', original: 'a', replacement: 'b' })
const reach = (file: string, ms: number, ids: readonly string[]): Reach => ({
  file,
  loading: new Set(),
  by: new Map(ids.map((id) => [id, { cases: [0], ms, hits: 1 }])),
  all: { cases: [0], ms },
  times: [ms],
})

type Tried = { readonly file: string; readonly ids: readonly string[] }

async function chase({ mutants, reaches, answer }: { mutants: Mutant[]; reaches: Reach[]; answer: (tried: Tried) => Ending }) {
  const tries: Tried[] = []
  const trial = async ({ file }: Reach, ids: readonly string[]) => {
    tries.push({ file, ids })
    return answer({ file, ids })
  }
  return { fates: await hunt({ mutants, reaches, trial }), tries }
}

test('a mutant that no test reaches is tried on none', async () => {
  const { fates, tries } = await chase({ mutants: [mutant('1')], reaches: [reach('x', 1, [])], answer: () => 'failed' })
  expect([fates.get('1'), tries]).toEqual(['no coverage', []])
})

test('its own test file comes first, then the quickest; the first that fails ends it', async () => {
  const reaches = [reach('slow', 9, ['1']), reach('quick', 1, ['1']), reach('src/a.test.ts', 99, ['1'])]
  const answer = ({ file }: Tried): Ending => (file === 'quick' ? 'failed' : 'passed')
  const { fates, tries } = await chase({ mutants: [mutant('1')], reaches, answer })
  expect(tries.map(({ file }) => file)).toEqual(['src/a.test.ts', 'quick'])
  expect(fates.get('1')).toBe('killed')
})

test('of many at once exactly those die that fail alone, and far fewer runs are needed', async () => {
  const ids = Array.from({ length: 200 }, (_, index) => String(index))
  const guilty = new Map<string, Ending>([
    ['17', 'failed'],
    ['120', 'timeout'],
  ])
  const answer = (tried: Tried): Ending => tried.ids.map((id) => guilty.get(id)).find((ending) => ending !== undefined) ?? 'passed'
  const { fates, tries } = await chase({ mutants: ids.map((id) => mutant(id)), reaches: [reach('x', 1, ids)], answer })
  expect([...fates].filter(([, fate]) => fate !== 'survived').sort()).toEqual([
    ['120', 'timeout'],
    ['17', 'killed'],
  ])
  expect(tries.length).toBeLessThan(60)
})

test('two that fail only together have both survived', async () => {
  const ids = ['1', '2', '3', '4', '5', '6', '7', '8']
  const answer = (tried: Tried): Ending => (tried.ids.length > 1 ? 'failed' : 'passed')
  const { fates } = await chase({ mutants: ids.map((id) => mutant(id)), reaches: [reach('x', 1, ids)], answer })
  expect(new Set(fates.values())).toEqual(new Set(['survived']))
})

test('the score counts what was noticed out of all mutants, file by file', () => {
  const mutants = [mutant('1'), mutant('2'), mutant('3', 'src/b.ts'), mutant('4', 'src/b.ts')]
  const { total, files, survivors } = reportOf(
    mutants,
    new Map([
      ['1', 'killed'],
      ['2', 'timeout'],
      ['3', 'survived'],
    ]),
  )
  expect(
    table([...files, total])
      .split('\n')
      .slice(2),
  ).toEqual(['| src/a.ts | 1 | 1 | 0 | 0 | 100.0 % |', '| src/b.ts | 0 | 0 | 1 | 1 | 0.0 % |', '| all | 1 | 1 | 1 | 1 | 50.0 % |'])
  expect(survivors.map(({ file, fate }) => `${file} ${fate}`)).toEqual(['src/b.ts survived', 'src/b.ts no coverage'])
})
