"""Write a small PDF form, to try `fields` and `fill` on."""

import sys

from reportlab.pdfgen.canvas import Canvas

canvas = Canvas(sys.argv[1])
canvas.drawString(70, 760, "Name")
canvas.drawString(70, 720, "Newsletter")
canvas.acroForm.textfield(name="name", x=150, y=750, width=250, height=24)
canvas.acroForm.checkbox(name="newsletter", x=150, y=712, size=18)
canvas.save()
