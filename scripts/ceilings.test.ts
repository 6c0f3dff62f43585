import { describe, expect, test } from 'bun:test'
import { countsOf, judge, limitsIn, lower, programIn } from './ceilings.ts'

const program = (files: { readonly [path: string]: string }) => programIn(Object.entries(files).map(([path, text]) => ({ path, text })))
const plenty = { lines: 500, bytes: 5000, files: 5, lazyImports: 5, longFunctions: 5 }
const long = (name: string, lines: number) => `export function ${name}() {${'\n'.repeat(lines - 1)}}\n`
const offender = {
  'src/kit/a.ts': `const load = () => import('./b.ts')\n${long('short', 70)}`,
  'src/kit/page.tsx': `// ä\n${long('first', 71)}${long('second', 90)}`,
}

describe('a ceiling', () => {
  test.each([
    ['lines', 'lines in src: 233, the ceiling "lines" in package.json is 0; use what is there already'],
    ['bytes', 'bytes in src: 352, the ceiling "bytes" in package.json is 0; use what is there already'],
    ['files', 'files in src: 2, the ceiling "files" in package.json is 0; merge a file'],
    ['lazyImports', 'import() expressions outside the command table: 1, the ceiling "lazyImports" in package.json is 0; import at the top'],
    [
      'longFunctions',
      'functions of more than 70 lines: 2, the ceiling "longFunctions" in package.json is 0; split a function; the longest is src/kit/page.tsx:73 with 90 lines',
    ],
  ])('of %s is seen when it is passed', (name, message) => {
    const { failures } = judge(program(offender), { ...plenty, [name]: 0 })
    expect(failures).toEqual([expect.stringContaining(message)])
  })

  test('holds at the same number, without a word', () => {
    expect(judge(program(offender), countsOf(program(offender)))).toEqual({ failures: [], remarks: [] })
  })

  test('above the number may be lowered', () => {
    const { failures, remarks } = judge(program(offender), { ...countsOf(program(offender)), files: 3 })
    expect(failures).toEqual([])
    expect(remarks).toEqual(['files in src: 2, the ceiling "files" in package.json is 3 and may be lowered: npm run check -- --lower'])
  })

  test('that package.json does not hold fails', () => {
    expect(judge(program(offender), limitsIn({})).failures).toHaveLength(5)
  })

  test('never rises', () => {
    expect(lower({ ...plenty, lines: 1, files: 9 }, plenty)).toEqual({ ...plenty, lines: 1 })
  })
})

describe('the program', () => {
  test('is without tests, fixtures and generated tables', () => {
    const table = '/** Lists rows; `scripts/rows.ts` writes this file. */\nexport const rows = [1]\n'
    expect(
      countsOf(program({ 'src/a.test.ts': 'x', 'src/b.test.tsx': 'x', 'src/fixture.ts': 'x', 'src/d.fixture.ts': 'x', 'src/c.ts': table })),
    ).toEqual(limitsIn({}))
    expect(countsOf(program({ 'src/c.ts': `${table}export const f = () => 1\n` })).files).toBe(1)
  })

  test('loads commands lazily in the rows of their table, and nothing else there', () => {
    const row = `export const commands = [{ name: 'a', load: async () => (await import('./a.ts')).a }]\n`
    expect(countsOf(program({ 'src/cli/commands/list.ts': row })).lazyImports).toBe(0)
    expect(countsOf(program({ 'src/cli/commands/list.ts': `${row}const b = () => import('./b.ts')` })).lazyImports).toBe(1)
    expect(countsOf(program({ 'src/host/list.ts': row })).lazyImports).toBe(1)
    expect(countsOf(program({ 'src/host/a.ts': `export type A = import('./b.ts').A` })).lazyImports).toBe(0)
  })
})
