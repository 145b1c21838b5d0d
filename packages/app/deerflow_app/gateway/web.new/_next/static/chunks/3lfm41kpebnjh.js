(globalThis.TURBOPACK||(globalThis.TURBOPACK=[])).push(["object"==typeof document?document.currentScript:void 0,569696,t=>{"use strict";var e=t.i(895727),r=t.i(526290);t.s(["f",0,(t,i)=>e.f.lang.round(r.f.parse(t)[i])],569696)},65486,t=>{"use strict";var e=(0,t.i(419524).p)(()=>`
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
`,"getIconStyles");t.s(["f",0,e])},58137,t=>{"use strict";var e=t.i(60231),r=t.i(419524),i=t.i(139941),a=t.i(419882),s=(0,r.p)((t,e)=>{let r=t.append("rect");if(r.attr("x",e.x),r.attr("y",e.y),r.attr("fill",e.fill),r.attr("stroke",e.stroke),r.attr("width",e.width),r.attr("height",e.height),e.name&&r.attr("name",e.name),e.rx&&r.attr("rx",e.rx),e.ry&&r.attr("ry",e.ry),void 0!==e.attrs)for(let t in e.attrs)r.attr(t,e.attrs[t]);return e.class&&r.attr("class",e.class),r},"drawRect"),l=(0,r.p)((t,e)=>{s(t,{x:e.startx,y:e.starty,width:e.stopx-e.startx,height:e.stopy-e.starty,fill:e.fill,stroke:e.stroke,class:"rect"}).lower()},"drawBackgroundRect"),o=(0,r.p)((t,r)=>{let i=r.text.replace(e.g," "),a=t.append("text");a.attr("x",r.x),a.attr("y",r.y),a.attr("class","legend"),a.style("text-anchor",r.anchor),r.class&&a.attr("class",r.class);let s=a.append("tspan");return s.attr("x",r.x+2*r.textMargin),s.text(i),a},"drawText"),n=(0,r.p)((t,e,r,a)=>{let s=t.append("image");s.attr("x",e),s.attr("y",r);let l=(0,i.sanitizeUrl)(a);s.attr("xlink:href",l)},"drawImage"),d=(0,r.p)((t,e,r,a)=>{let s=t.append("use");s.attr("x",e),s.attr("y",r);let l=(0,i.sanitizeUrl)(a);s.attr("xlink:href",`#${l}`)},"drawEmbeddedImage"),c=(0,r.p)(()=>({x:0,y:0,width:100,height:100,fill:"#EDF2AE",stroke:"#666",anchor:"start",rx:0,ry:0}),"getNoteRect"),p=(0,r.p)(()=>({x:0,y:0,width:100,height:100,"text-anchor":"start",style:"#666",textMargin:0,rx:0,ry:0,tspan:!0}),"getTextObj"),x=(0,r.p)(()=>{let t=(0,a.f)(".mermaidTooltip");return t.empty()&&(t=(0,a.f)("body").append("div").attr("class","mermaidTooltip").style("opacity",0).style("position","absolute").style("text-align","center").style("max-width","200px").style("padding","2px").style("font-size","12px").style("background","#ffffde").style("border","1px solid #333").style("border-radius","2px").style("pointer-events","none").style("z-index","100")),t},"createTooltip");t.s(["m",0,x,"Z",0,l,"N",0,d,"A",0,n,"J",0,s,"K",0,o,"f",0,c,"W",0,p])},117204,t=>{"use strict";var e=t.i(60231),r=t.i(508324),i=t.i(419524),a=(0,i.p)((t,i,a,o)=>{t.attr("class",a);let{width:n,height:d,x:c,y:p}=s(t,i);(0,e.m)(t,d,n,o);let x=l(c,p,n,d,i);t.attr("viewBox",x),r.d.debug(`viewBox configured: ${x} with padding: ${i}`)},"setupViewPortForSVG"),s=(0,i.p)((t,e)=>{let r=t.node()?.getBBox()||{width:0,height:0,x:0,y:0};return{width:r.width+2*e,height:r.height+2*e,x:r.x,y:r.y}},"calculateDimensionsWithPadding"),l=(0,i.p)((t,e,r,i,a)=>`${t-a} ${e-a} ${r} ${i}`,"createViewBox");t.s(["f",0,a])},902769,t=>{"use strict";var e=t.i(419524),r=t.i(419882),i=(0,e.p)((t,e)=>{let i;return"sandbox"===e&&(i=(0,r.f)("#i"+t)),("sandbox"===e?(0,r.f)(i.nodes()[0].contentDocument.body):(0,r.f)("body")).select(`[id="${t}"]`)},"getDiagramElement");t.s(["f",0,i])},557786,t=>{"use strict";var e=t.i(708664);t.i(902769),t.i(117204),t.i(865264),t.i(121292),t.i(58137),t.i(369110),t.i(382793),t.i(502056),t.i(217248),t.i(224797),t.i(836333),t.i(29836),t.i(447804),t.i(60231),t.i(508324);var r=(0,t.i(419524).p)(t=>`${(0,e.v)(t)}
  .swimlane.cluster rect {
    stroke: ${t.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,"getStyles"),i=(0,e.g)({defaultLayout:"swimlane",styles:r});t.s(["diagram",0,i])}]);