import { describe, expect, test } from 'bun:test'
import { parse } from 'smol-toml'
import { parseStructure } from './rules.ts'

/** Without positions: those are tried with the reader of the configuration in test/command-line/structure.test.ts. */
const problems = (text: string) => parseStructure({ data: parse(text), problems: [], place: () => undefined }).problems
const rule = (text: string) => problems(`[blocks]\nui = "src/ui/"\n[rules.a]\n${text}`).map((each) => each.replace('1:1: rules.a', ''))

describe('a mistake is named', () => {
  test.each([
    ['files = "ui"\nimport_no = "ui"', '.import_no: unknown key; allowed: imports_no,'],
    ['files = "ui"\nimport_no = "ui"', ': needs exactly one of imports_no, imports_only'],
    ['files = "ui"\nmax_lines = 1\nmax_files = 1', ': needs exactly one of'],
    ['imports_no = "ui"', ': needs files: imports_no is about some of them'],
    ['files = "iu"\nmax_lines = 1', '.files: no block is called "iu"; a path has "/", "." or "*" in it; did you mean "ui"?'],
    ['files = "ui"\nimports_no = "data"', '.imports_no: no block is called "data"'],
    ['files = []\nmax_lines = 1', '.files: must be a text or a list of texts'],
    ['files = [1]\nmax_lines = 1', '.files: must be a text or a list of texts'],
    ['files = "ui"\nmax_lines = 0', '.max_lines: must be a whole number above 0'],
    ['files = "ui"\nmax_lines = "9"', '.max_lines: must be a whole number above 0'],
    ['no_cycles = false', '.no_cycles: must be true'],
    ['files = "ui"\nbeside = "x.test.ts"', '.beside: must be the name of a file'],
    ['files = "ui"\nbeside = "../{name}.ts"', '.beside: must be the name of a file'],
    ['files = "ui"\nmax_lines = 1\nverdict = "no"', '.verdict: must be "veto" or "ask"'],
    ['files = "ui"\nmax_lines = 1\ntypes = 1', '.types: must be true or false'],
    ['files = "ui"\nmax_lines = 1\nreason = 1', '.reason: must be a text'],
  ])('%j', (text, message) => {
    expect(rule(text).join('\n')).toContain(message)
  })

  test('in the whole file too, all at once', () => {
    expect(problems('rule = 1\nblocks = 2\n[rules."A b"]\nno_cycles = true\n[rules]\nb = 3')).toEqual([
      expect.stringContaining('rule: unknown key; allowed: blocks, rules; did you mean "rules"?'),
      expect.stringContaining('blocks: must be a table'),
      expect.stringContaining('rules.A b: a name has 1 to 64 of'),
      expect.stringContaining('rules.b: must be a table'),
      expect.stringContaining('rules.b: needs exactly one of'),
    ])
  })

  test('an empty file has none', () => {
    expect(problems('')).toEqual([])
  })
})

test('case does not count in a path, and a folder is all that is in it', () => {
  const { rules } = parseStructure({
    data: parse('[rules.a]\nfiles = ["./src/UI/"]\nexcept = "**/*.test.ts"\nmax_lines = 1'),
    problems: [],
    place: () => undefined,
  })
  expect(['src/ui/a.ts', 'SRC/Ui/b/c.ts', 'src/ui/a.test.ts', 'src/uia.ts'].map((path) => rules[0]?.isAbout(path))).toEqual([
    true,
    true,
    false,
    false,
  ])
})
