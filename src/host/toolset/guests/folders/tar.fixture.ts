/** Makes tar archives of any content, also of such that no program makes. */

export type TarMember = {
  readonly name: string
  readonly text?: string
  readonly mode?: number
  readonly type?: string
  readonly link?: string
}

export function tarOf(members: readonly TarMember[]): Buffer {
  return Buffer.concat([...members.flatMap(partsOf), Buffer.alloc(1_024)])
}

function partsOf({ name, text = '', mode = 0o644, type = '0', link = '' }: TarMember): Buffer[] {
  const body = Buffer.from(text)
  const padded = Buffer.concat([body, Buffer.alloc((512 - (body.length % 512)) % 512)])
  const isLong = Buffer.byteLength(name) > 100
  const header = Buffer.alloc(512)
  header.write(isLong ? 'long' : name, 0, 100)
  header.write(mode.toString(8).padStart(7, '0'), 100)
  header.write(body.length.toString(8).padStart(11, '0'), 124)
  header.write(type, 156)
  header.write(link, 157, 100)
  header.write('ustar\0', 257)
  if (!isLong) return [header, padded]
  const rest = ` path=${name}\n`
  const length = Buffer.byteLength(rest) + String(Buffer.byteLength(rest) + 3).length
  return [...partsOf({ name: 'pax', type: 'x', text: `${length}${rest}` }), header, padded]
}
