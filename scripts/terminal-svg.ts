/** Draws a screen of a terminal, as `tmux capture-pane -e` prints it, as an SVG whose text can be selected and searched. */

type Style = {
  readonly color?: string
  readonly back?: string
  readonly bold?: boolean
  readonly dim?: boolean
  readonly italic?: boolean
  readonly line?: 'underline' | 'line-through'
  readonly reverse?: boolean
}

type Run = { readonly text: string; readonly style: Style; readonly column: number }

export type Size = { readonly columns: number; readonly rows: number }

const [ground, ink] = ['#1e1f24', '#d6d8de']
const [wide, high, edge] = [8.4, 18, 12]
const named = ['#3b3d45', '#e06c75', '#98c379', '#e5c07b', '#61afef', '#c678dd', '#56b6c2', '#d6d8de']
const bright = ['#7f848e', '#ff7b86', '#b5e890', '#ffd68a', '#7cc3ff', '#dd8df0', '#6fd3df', '#ffffff']

/** Returns the picture of a screen of that size; a screen reader reads the title. */
export function terminalSvg(screen: string, { columns, rows }: Size, title: string): string {
  const [width, height] = [Math.ceil(columns * wide) + 2 * edge, rows * high + 2 * edge]
  let style: Style = {}
  const lines = screen.split('\n').slice(0, rows)
  const drawn = lines.flatMap((line, row) => {
    const read = runsOf(line, style)
    style = read.style
    return read.runs.map((run) => drawRun(run, row))
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="6" fill="${ground}"/>`,
    ...drawn,
    '</svg>\n',
  ].join('\n')
}

/** Splits a line where its style changes; the style at its end holds for the next line. */
function runsOf(line: string, first: Style): { readonly runs: readonly Run[]; readonly style: Style } {
  const runs: Run[] = []
  let [style, column] = [first, 0]
  for (const [, codes, text = ''] of line.matchAll(/\p{Cc}\[([\d;:]*)m|(\P{Cc}+)|\p{Cc}/gu)) {
    if (codes !== undefined) style = styled(style, codes === '' ? [0] : codes.split(/[;:]/).map(Number))
    else {
      runs.push({ text, style, column })
      column += Bun.stringWidth(text)
    }
  }
  return { runs: runs.filter(({ text, style: { back, reverse } }) => text.trim() !== '' || back !== undefined || reverse), style }
}

function styled(style: Style, [code = 0, ...rest]: readonly number[]): Style {
  const then = (next: Style, skip = 0): Style => (rest.length > skip ? styled(next, rest.slice(skip)) : next)
  if (code === 38 || code === 48) {
    const [mode, ...numbers] = rest
    const color = mode === 5 ? indexed(numbers[0] ?? 7) : `rgb(${numbers.slice(0, 3).join(',')})`
    return then(code === 38 ? { ...style, color } : { ...style, back: color }, mode === 5 ? 2 : 4)
  }
  return then(simple(style, code))
}

function simple(style: Style, code: number): Style {
  switch (code) {
    case 0: return {}
    case 1: return { ...style, bold: true }
    case 2: return { ...style, dim: true }
    case 3: return { ...style, italic: true }
    case 4: return { ...style, line: 'underline' }
    case 7: return { ...style, reverse: true }
    case 9: return { ...style, line: 'line-through' }
    case 22: return { ...style, bold: false, dim: false }
    case 23: return { ...style, italic: false }
    case 24: case 29: return without(style, 'line')
    case 27: return { ...style, reverse: false }
    case 39: return without(style, 'color')
    case 49: return without(style, 'back')
  } // biome-ignore format: a table to be read
  if (code >= 30 && code <= 37) return { ...style, color: named[code - 30] ?? ink }
  if (code >= 90 && code <= 97) return { ...style, color: bright[code - 90] ?? ink }
  if (code >= 40 && code <= 47) return { ...style, back: named[code - 40] ?? ground }
  if (code >= 100 && code <= 107) return { ...style, back: bright[code - 100] ?? ground }
  return style
}

function without(style: Style, name: keyof Style): Style {
  const { [name]: _, ...rest } = style
  return rest
}

/** Returns a colour of the palette of 256. */
function indexed(at: number): string {
  if (at < 16) return (at < 8 ? named[at] : bright[at - 8]) ?? ink
  if (at >= 232) return `rgb(${[1, 1, 1].map((one) => one * (8 + (at - 232) * 10)).join(',')})`
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40)
  return `rgb(${[Math.floor((at - 16) / 36), Math.floor((at - 16) / 6) % 6, (at - 16) % 6].map(level).join(',')})`
}

function drawRun({ text, style, column }: Run, row: number): string {
  const [x, y] = [(edge + column * wide).toFixed(1), edge + row * high]
  const length = (Bun.stringWidth(text) * wide).toFixed(1)
  const [color, back] = style.reverse ? [style.back ?? ground, style.color ?? ink] : [style.color ?? ink, style.back]
  const looks = [
    `fill="${color}"`,
    style.bold ? 'font-weight="bold"' : '',
    style.dim ? 'opacity="0.6"' : '',
    style.italic ? 'font-style="italic"' : '',
    style.line ? `text-decoration="${style.line}"` : '',
  ].filter(Boolean)
  const box = back === undefined ? '' : `<rect x="${x}" y="${y}" width="${length}" height="${high}" fill="${back}"/>`
  return `${box}<text x="${x}" y="${y + 14}" textLength="${length}" xml:space="preserve" ${looks.join(' ')}>${escaped(text)}</text>`
}

function escaped(text: string): string {
  return text
    .replace(/[\p{Cc}]/gu, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
}
