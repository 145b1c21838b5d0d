(globalThis.TURBOPACK||(globalThis.TURBOPACK=[])).push(["object"==typeof document?document.currentScript:void 0,569696,e=>{"use strict";var i=e.i(895727),o=e.i(526290);e.s(["f",0,(e,t)=>i.f.lang.round(o.f.parse(e)[t])],569696)},65486,e=>{"use strict";var i=(0,e.i(419524).p)(()=>`
  /* Font Awesome icon styling - consolidated */
  .label-icon {
    display: inline-block;
    height: 1em;
    overflow: visible;
    vertical-align: -0.125em;
  }
  
  .node .label-icon path {
    fill: currentColor;
    stroke: revert;
    stroke-width: revert;
  }
`,"getIconStyles");e.s(["f",0,i])}]);