import { expect, test } from 'bun:test'
import { digestsOfRun } from './run-files.ts'

const read = (files: { readonly [path: string]: string }) => (path: string) => {
  const text = files[path]
  return text === undefined ? ({ ok: false, message: 'none' } as const) : ({ ok: true, bytes: Buffer.from(text) } as const)
}

test('a file that is not there yet counts, because it may be there when the command runs', () => {
  expect(digestsOfRun(['/w/GNUmakefile', '/w/x.sh'], read({ '/w/x.sh': 'a' }))).toMatchObject({ 'runs /w/GNUmakefile': 'none' })
})

test('what a makefile includes by name belongs to it, to any depth and in circles; a variable does not', () => {
  const files = {
    '/w/Makefile': '-include a.mk sub/b.mk\ninclude $(DIR)/c.mk\n# include d.mk\nall:\n\tinclude e.mk\n',
    '/w/a.mk': 'include Makefile f.mk',
    '/w/sub/b.mk': '',
    '/w/f.mk': '',
  }
  expect(Object.keys(digestsOfRun(['/w/Makefile'], read(files)))).toEqual(
    ['/w/Makefile', '/w/a.mk', '/w/sub/b.mk', '/w/f.mk'].map((path) => `runs ${path}`),
  )
})

test('another content gives another digest', () => {
  const of = (text: string) => digestsOfRun(['/w/x.sh'], read({ '/w/x.sh': text }))
  expect(of('a')).not.toEqual(of('b'))
})
